// Which processes are this agent's: its workers and ranks, and what these have started. Set by the agent's loop, asked by a probe on a thread of its own.
// Thread-safe. Reads /proc/PID/stat, which does not wait for a process that the kernel holds.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>

namespace muster::agent::probe {

class OwnProcesses {
 public:
  void set(std::set<pid_t> pids);
  // One of them, even if it has ended, or a living descendant of one: a rank may be a shell, and what it starts uses the card.
  [[nodiscard]] bool holds(pid_t pid) const;

 private:
  mutable std::mutex mutex_;
  std::set<pid_t> pids_;
};

}  // namespace muster::agent::probe
