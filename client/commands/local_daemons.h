// The daemons of a private cluster as processes: which were started, whether they live, how they end. A daemon is its pid and start time, written down in
// `processes` (local_paths.h); every signal goes through a pidfd whose start time was checked. One thread; blocks with deadlines.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/process/identity.h"

namespace muster::client {

struct LocalDaemon {
  std::string name;  // "controller", "agent"
  std::string node;  // agents only
  process::ProcessId process;
  std::filesystem::path log;
};

// The daemons of `processes`, living or not. NotFound: no cluster was ever started here.
Result<std::vector<LocalDaemon>> read_daemons(const std::filesystem::path& dir);
Result<void> write_daemons(const std::filesystem::path& dir, const std::vector<LocalDaemon>& daemons);

// `name`: "controller" or "agent"; `file`: of its log, without the ending.
Result<LocalDaemon> start_daemon(const std::filesystem::path& dir, const std::string& name, const std::string& node, const std::string& file,
                                 std::vector<std::string> args);

// It runs, and nobody has killed it: a process that SIGKILL was sent to may still be listed, talk and hold its locks.
bool is_up(const LocalDaemon& daemon);
// The error names one that has ended or is ending, with the end of its log.
Result<void> all_up(const std::vector<LocalDaemon>& daemons);
// By their pidfds: until the last thread of each is gone, and with it every lock and socket that they held. False: time is up.
bool wait_gone(const std::vector<LocalDaemon>& daemons, std::chrono::steady_clock::time_point until);
void signal_all(const std::vector<LocalDaemon>& daemons, int number);

}  // namespace muster::client
