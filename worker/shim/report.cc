#include "worker/shim/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <sstream>

#include "common/io/file.h"
#include "common/process/identity.h"

namespace muster::shim {
namespace {

constexpr std::size_t kReportMost = 1U << 20U;

// Launches that have told no end, by pid: when they were started.
std::map<pid_t, std::uint64_t> open_launches(const std::string& text) {
  std::map<pid_t, std::uint64_t> open;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string verb;
    pid_t pid = 0;
    std::uint64_t start = 0;
    if (!(words >> verb >> pid)) continue;
    if (verb == "begin" && words >> start) open[pid] = start;
    if (verb == "end" || verb == "gone") open.erase(pid);
  }
  return open;
}

}  // namespace

Report::Report(const std::string& path) {
  if (path.empty()) return;
  const auto before = io::read_regular_file(path, kReportMost);
  fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600));
  if (before) {
    for (const auto& [pid, start] : open_launches(*before)) {
      if (!process::alive({.pid = pid, .start_time = start})) add("gone " + std::to_string(pid) + "\n");
    }
  }
  const auto own = process::self();
  add("begin " + std::to_string(::getpid()) + (own ? " " + std::to_string(own->start_time) : "") + "\n");
}

void Report::end(const Ended& ended) const {
  add("end " + std::to_string(::getpid()) + " " + std::to_string(ended.code) + " " + std::to_string(ended.signal) + " " + ended.name + "\n");
}

void Report::add(const std::string& line) const {
  if (fd_) (void)!::write(fd_.get(), line.data(), line.size());
}

}  // namespace muster::shim
