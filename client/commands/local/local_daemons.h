// Manages the daemons of a private cluster as processes: which were started, whether they are
// alive, and how they end. Stateless functions on plain values. One thread; blocks with deadlines.
//
// A daemon is identified by its pid and start time. They are in the file `processes`
// (local_paths.h), or the daemon is found among the running processes by its command line. The
// second case is needed: a killed 'local up', a full disk or a removed file leaves daemons that are
// not in the file.
//
// Every signal goes through a pidfd whose start time was checked.
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
  process::ProcessId process{};  // pid 0: planned, not started
  std::filesystem::path log;
  std::uint32_t devices = 0;  // agents only; 0: not known
  // agents only: type of the stand-ins (local_cards.h); empty: CPU slots, or not known
  std::string device_type;

  [[nodiscard]] bool same_as(const LocalDaemon& other) const {
    return name == other.name && node == other.node;
  }
};

// Returns the daemons in `processes`, alive or not, and those that run without being in it; the
// controller comes first. NotFound: the file does not exist and no daemon runs.
Result<std::vector<LocalDaemon>> find_daemons(const std::filesystem::path& dir);
Result<void> write_daemons(const std::filesystem::path& dir,
                           const std::vector<LocalDaemon>& daemons);

// `name` is "controller" or "agent". `file` is the name of its log, without the extension.
Result<LocalDaemon> start_daemon(const std::filesystem::path& dir, const std::string& name,
                                 const std::string& node, const std::string& file,
                                 std::vector<std::string> args);

// True if it runs and no SIGKILL was sent to it. A process that got SIGKILL may still be listed,
// answer calls, and own its locks.
bool is_up(const LocalDaemon& daemon);
// Returns the last warning or error in its log, or an empty text.
std::string last_complaint(const LocalDaemon& daemon);
// The error names a daemon that has ended or is ending, with the end of its log.
Result<void> all_up(const std::vector<LocalDaemon>& daemons);
// Waits by their pidfds until the last thread of each is gone, and with it every lock and socket
// that they owned. Returns false if the time is over.
bool wait_gone(const std::vector<LocalDaemon>& daemons,
               std::chrono::steady_clock::time_point until);
void signal_all(const std::vector<LocalDaemon>& daemons, int number);

}  // namespace muster::client
