#include "worker/children.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "common/io/file.h"

namespace muster::worker {
namespace {

constexpr std::size_t kEnvironmentMost = 4U << 20U;
constexpr std::size_t kStatusMost = 65536;
constexpr std::uint64_t kEnding = 0x404;  // PF_SIGNALED, PF_EXITING

std::optional<pid_t> number_in(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return error == std::errc() && end == name.data() + name.size() && pid > 0 ? std::optional(pid)
                                                                             : std::nullopt;
}

// Reads "SigPnd:" or "ShdPnd:" in /proc/PID/status: a mask in hexadecimal, in which signal 1 is the
// lowest bit.
std::uint64_t pending(const std::string& status, std::string_view field) {
  const std::size_t at = status.find("\n" + std::string(field) + "\t");
  std::uint64_t mask = 0;
  if (at != std::string::npos)
    (void)std::from_chars(status.data() + at + field.size() + 2, status.data() + status.size(),
                          mask, 16);
  return mask;
}

void add_children(const std::string& process, const std::string& thread,
                  std::vector<pid_t>& found) {
  const auto text = io::read_file("/proc/" + process + "/task/" + thread + "/children", 16U << 20U);
  if (!text) return;
  for (const char *at = text->data(), *end = at + text->size(); at < end;) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    at = parsed.ptr + 1;
    if (pid > 0) found.push_back(pid);
  }
}

}  // namespace

bool is_own_binary(pid_t pid) {
  struct stat own{}, its{};
  return ::stat("/proc/self/exe", &own) == 0 &&
         ::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &its) == 0 &&
         own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

std::vector<pid_t> children() {
  const auto own = std::to_string(::getpid());
  std::vector<pid_t> found;
  add_children(own, own, found);
  return found;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string process = std::to_string(pid);
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/" + process + "/task", error), last;
       !error && at != last; at.increment(error)) {
    add_children(process, at->path().filename().string(), found);
  }
  return found;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::vector<Descendant> descendants() {
  struct Seen {
    Descendant process;
    bool lives = false;
  };
  std::multimap<pid_t, Seen> by_parent;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), last; !error && at != last;
       at.increment(error)) {
    const auto pid = number_in(at->path().filename().string());
    if (!pid) continue;
    const auto stat = process::read_stat(*pid);
    if (!stat) continue;
    by_parent.emplace(
        stat->parent,
        Seen{.process = {.id = {.pid = *pid, .start_time = stat->start_time}, .group = stat->group},
             .lives = stat->state != 'Z' && stat->state != 'X'});
  }
  std::vector<Descendant> found;
  std::vector<pid_t> parents = {::getpid()};
  while (!parents.empty()) {
    const auto [first, last] = by_parent.equal_range(parents.back());
    parents.pop_back();
    for (auto at = first; at != last; ++at) {
      const Seen& seen = at->second;
      if (seen.lives) found.push_back(seen.process);
      if (!is_own_binary(seen.process.id.pid)) parents.push_back(seen.process.id.pid);
    }
    by_parent.erase(first, last);  // a pid that was reused meanwhile makes no cycle
  }
  return found;
}

// Reads the pending signals before the flags: a signal that is no longer pending has set them.
bool is_dying(pid_t pid) {
  const auto status = io::read_file("/proc/" + std::to_string(pid) + "/status", kStatusMost);
  constexpr std::uint64_t kEnds = 1ULL << (SIGKILL - 1) | 1ULL << (SIGTERM - 1);
  if (!status || ((pending(*status, "SigPnd:") | pending(*status, "ShdPnd:")) & kEnds) != 0)
    return true;
  const auto stat = process::read_stat(pid);
  return !stat || stat->state == 'Z' || stat->state == 'X' || (stat->flags & kEnding) != 0;
}

std::optional<std::uint32_t> rank_number_in(std::string_view environment) {
  for (const std::string_view name : {"RANK_ID=", "RANK="}) {
    std::size_t at = environment.starts_with(name)
                         ? 0
                         : environment.find(std::string(1, '\0') + std::string(name));
    if (at == std::string_view::npos) continue;
    at += name.size() + (at == 0 && environment.starts_with(name) ? 0 : 1);
    const char* const end =
        environment.data() + std::min(environment.find('\0', at), environment.size());
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(environment.data() + at, end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> rank_number_of(pid_t pid) {
  const auto environment =
      io::read_file("/proc/" + std::to_string(pid) + "/environ", kEnvironmentMost);
  return environment ? rank_number_in(*environment) : std::nullopt;
}

std::string rank_of_process(pid_t pid) {
  const auto number = rank_number_of(pid);
  return number ? "rank " + std::to_string(*number) : std::string();
}

}  // namespace muster::worker
