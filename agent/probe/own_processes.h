// Which processes are this agent's: its workers and ranks, and what these have started; and which
// devices its runs are on. Set by the agent's loop, asked by a probe on a thread of its own.
// Thread-safe. Reads /proc/PID/stat, which does not wait for a process that the kernel holds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <set>

namespace muster::agent::probe {

class OwnProcesses {
 public:
  // `devices`: by id, of the runs that are not swept.
  void set(std::set<pid_t> pids, std::set<std::uint32_t> devices = {});
  // One of them, even if it has ended, or a living descendant of one: a rank may be a shell, and
  // what it starts uses the card.
  [[nodiscard]] bool holds(pid_t pid) const;

  // A look takes seconds, and shows what was at some moment of it.
  void begin_probe();
  // A run of ours is on it, or was at some time since the look began.
  [[nodiscard]] bool on_device(std::uint32_t id) const;

 private:
  mutable std::mutex mutex_;
  std::set<pid_t> pids_;
  std::set<std::uint32_t> devices_, since_probe_;
};

}  // namespace muster::agent::probe
