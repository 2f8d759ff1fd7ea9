// The daemons of a private cluster as processes: which were started, whether they live, how they
// end. A daemon is its pid and start time, written down in `processes` (local_paths.h), or found
// among the running processes by its command line: a 'local up' that was killed, a full disk or a
// removed file leaves daemons that nobody wrote down. Every signal goes through a pidfd whose start
// time was checked. One thread; blocks with deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/process/identity.h"

namespace muster::client {

struct LocalDaemon {
  std::string name;              // "controller", "agent"
  std::string node;              // agents only
  process::ProcessId process{};  // pid 0: it was to be started
  std::filesystem::path log;
  std::uint32_t devices = 0;  // agents only; 0: not known
  // agents only: of stand-ins (local_cards.h); empty: CPU slots, or not known
  std::string device_type;

  [[nodiscard]] bool same_as(const LocalDaemon& other) const {
    return name == other.name && node == other.node;
  }
};

// The daemons of `processes`, living or not, and those that run without being in it; the controller
// first. NotFound: nothing is written down, and none runs.
Result<std::vector<LocalDaemon>> find_daemons(const std::filesystem::path& dir);
Result<void> write_daemons(const std::filesystem::path& dir,
                           const std::vector<LocalDaemon>& daemons);

// `name`: "controller" or "agent"; `file`: of its log, without the ending.
Result<LocalDaemon> start_daemon(const std::filesystem::path& dir, const std::string& name,
                                 const std::string& node, const std::string& file,
                                 std::vector<std::string> args);

// It runs, and nobody has killed it: a process that SIGKILL was sent to may still be listed, talk
// and hold its locks.
bool is_up(const LocalDaemon& daemon);
// The last warning or error in its log; empty: there is none.
std::string last_complaint(const LocalDaemon& daemon);
// The error names one that has ended or is ending, with the end of its log.
Result<void> all_up(const std::vector<LocalDaemon>& daemons);
// By their pidfds: until the last thread of each is gone, and with it every lock and socket that
// they held. False: time is up.
bool wait_gone(const std::vector<LocalDaemon>& daemons,
               std::chrono::steady_clock::time_point until);
void signal_all(const std::vector<LocalDaemon>& daemons, int number);

}  // namespace muster::client
