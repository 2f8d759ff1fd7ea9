// OwnProcesses holds which processes belong to this agent (its workers, ranks and their
// descendants), and which devices its runs use. Agent (agent/loop.h) and the Prober share it.
// Thread-safe: the agent's loop sets it, and the prober's thread reads it.
//
// It reads /proc/PID/stat, which does not wait for a process that hangs in the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "common/base/mutex.h"

namespace muster::agent::probe {

class OwnProcesses {
 public:
  // `devices` holds the ids of the devices of runs that are not swept.
  void set(std::set<pid_t> pids, std::set<std::uint32_t> devices = {});
  // Reports whether the pid is one of them, even if it has ended, or a living descendant of one. A
  // rank may be a shell, and its children use the card.
  [[nodiscard]] bool holds(pid_t pid) const;

  // Marks the start of a probe. A probe takes seconds and may show the state at any moment of it.
  void begin_probe();
  // Reports whether a run of this agent uses the device, or used it at some time since the probe
  // began.
  [[nodiscard]] bool on_device(std::uint32_t id) const;

 private:
  mutable Mutex mutex_;
  std::set<pid_t> pids_ MUSTER_GUARDED_BY(mutex_);
  std::set<std::uint32_t> devices_ MUSTER_GUARDED_BY(mutex_);
  std::set<std::uint32_t> since_probe_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent::probe
