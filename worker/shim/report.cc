#include "worker/shim/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>

#include "common/io/file.h"
#include "common/process/identity.h"

namespace muster::shim {
namespace {

constexpr std::size_t kReportMost = 1U << 20U;

// Launches that have reported no end: their start times by pid.
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

bool is_plain(const std::string& path) {
  return std::ranges::none_of(
      path, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Report::Report(const std::string& path, const Launched& launched) {
  if (path.empty()) return;
  const auto before = io::read_regular_file(path, kReportMost);
  fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600));
  if (before) {
    for (const auto& [pid, start] : open_launches(*before)) {
      if (!process::alive({.pid = pid, .start_time = start}))
        add("gone " + std::to_string(pid) + "\n");
    }
  }
  const auto own = process::self();
  std::string lines = "begin " + std::to_string(::getpid()) +
                      (own ? " " + std::to_string(own->start_time) : "") + "\n";
  if (!launched.saves.empty() && is_plain(launched.saves))
    lines += "saves " + std::to_string(launched.first_rank) + " " + std::to_string(launched.ranks) +
             (launched.weights_alone ? " alone " : " whole ") + launched.saves + "\n";
  for (const auto& [rank, log] : launched.logs)
    if (is_plain(log)) lines += "log " + std::to_string(rank) + " " + log + "\n";
  add(lines);
}

void Report::end(const Ended& ended) const {
  add("end " + std::to_string(::getpid()) + " " + std::to_string(ended.code) + " " +
      std::to_string(ended.signal) + " " + ended.name + "\n");
}

void Report::add(const std::string& line) const {
  if (fd_) (void)!::write(fd_.get(), line.data(), line.size());
}

}  // namespace muster::shim
