#include "worker/script_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>
#include <system_error>

#include "worker/children.h"

namespace muster::worker {

ScriptRanks::ScriptRanks(const std::filesystem::path& logs,
                         std::optional<std::uint32_t> scripts_own)
    : scripts_own_(scripts_own) {
  std::error_code error;
  const auto canonical = std::filesystem::canonical(logs, error);  // as in /proc
  logs_ = (error ? logs : canonical).string() + "/";
}

std::string ScriptRanks::log_of(pid_t pid) const {
  std::array<char, PATH_MAX> path{};
  const ssize_t length =
      ::readlink(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) >= path.size()) return {};
  const std::string_view log(path.data(), static_cast<std::size_t>(length));
  // A pipe and a socket have names without a leading slash.
  const bool device =
      (log.starts_with("/dev/") && !log.starts_with("/dev/shm/")) || log.starts_with("/proc/");
  return log.front() == '/' && !device && !log.starts_with(logs_) && !log.ends_with(" (deleted)")
             ? std::string(log)
             : std::string();
}

std::vector<ScriptRank> ScriptRanks::scan(BootTime until) {
  const auto ticks = static_cast<std::uint64_t>(std::max<std::int64_t>(
                         0, until.time_since_epoch() / std::chrono::milliseconds(1))) *
                     static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)) / 1000;
  std::vector<ScriptRank> found;
  std::vector<pid_t> wait = children();
  std::size_t scanned = 0;
  for (std::size_t at = 0; at < wait.size() && ++scanned <= kScannedMost && !full(); ++at) {
    const pid_t pid = wait[at];
    const auto stat = process::read_stat(pid);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    const process::ProcessId process{.pid = pid, .start_time = stat->start_time};
    if (reported_.contains(process) || is_own_binary(pid)) continue;
    const auto rank = rank_number_of(pid);
    if (!rank || rank == scripts_own_) {
      for (const pid_t child : children_of(pid)) wait.push_back(child);
      continue;
    }
    if (stat->start_time > ticks) continue;
    std::string log = log_of(pid);
    // Another process may have this pid by now: then none of these facts is about the rank.
    if (!process::alive(process)) continue;
    reported_.insert(process);
    found.push_back({.rank = *rank, .process = process, .log = std::move(log)});
  }
  return found;
}

}  // namespace muster::worker
