#include "agent/probe/own_processes.h"

#include "common/process/identity.h"

namespace muster::agent::probe {

void OwnProcesses::set(std::set<pid_t> pids, std::set<std::uint32_t> devices) {
  const MutexLock lock(mutex_);
  pids_ = std::move(pids);
  devices_ = std::move(devices);
  since_probe_.insert(devices_.begin(), devices_.end());
}

void OwnProcesses::begin_probe() {
  const MutexLock lock(mutex_);
  since_probe_ = devices_;
}

bool OwnProcesses::on_device(std::uint32_t id) const {
  const MutexLock lock(mutex_);
  return since_probe_.contains(id);
}

bool OwnProcesses::holds(pid_t pid) const {
  constexpr int kGenerationsMax = 64;
  std::set<pid_t> pids;
  {
    const MutexLock lock(mutex_);
    pids = pids_;
  }
  // A worker adopts its ranks' orphans, so the parents of any of them lead to the worker.
  for (int generation = 0; generation < kGenerationsMax && pid > 1; ++generation) {
    if (pids.contains(pid)) return true;
    const auto stat = process::read_stat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

}  // namespace muster::agent::probe
