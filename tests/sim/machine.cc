#include "tests/sim/machine.h"

#include <fmt/format.h>

#include "tests/sim/agent_model.h"
#include "tests/sim/worker_model.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

// Workers write into the run directories of the original.
Disk copy_of(const Disk& disk) {
  Disk copy{.identity = disk.identity, .runs = {}};
  for (const auto& [run, dir] : disk.runs) copy.runs[run] = std::make_shared<RunDir>(*dir);
  return copy;
}

}  // namespace

std::string_view to_string(DeathCause cause) {
  switch (cause) {
    case DeathCause::Ended: return "ended";
    case DeathCause::Failed: return "failed by itself";
    case DeathCause::PeerLost: return "lost a peer";
    case DeathCause::Killed: return "killed by the storm";
    case DeathCause::WorkerDied: return "its worker died";
    case DeathCause::PowerLost: return "its machine went off";
    case DeathCause::Stopped: return "stopped";
    case DeathCause::Orphaned: return "orphaned";
    case DeathCause::StartFailed: return "its start failed";
    case DeathCause::Swept: return "swept";
  }
  return "?";
}

Machine::Machine(World& world, NodeName name, std::uint32_t devices)
    : world_(world), name_(std::move(name)) {
  for (std::uint32_t id = 0; id < devices; ++id) {
    v1::Device* device = inventory_.add_devices();
    device->set_id(id);
    device->set_type("cpu");
  }
  inventory_.set_address("10.0.0." + name_.str().substr(1));
  v1::NetworkInterface& network = *inventory_.add_interfaces();
  network.set_name("eth0");
  network.add_addresses(inventory_.address());
  inventory_.set_hostname(name_.str());
  inventory_.set_rclone("1.60.1");
  inventory_.set_uploads(true);
  inventory_.set_uploads_logs(true);
  boot_ = BootId(fmt::format("{}-boot-{}", name_.str(), ++boots_));
  boot_origin_ = -world_.rng.between(10, 10'000) * kSecond;
  wall_offset_ = world_.rng.between(-2'000, 2'000) * kMillisecond;
  agent_ = std::make_unique<AgentModel>(world_, *this);
}

Machine::~Machine() = default;

Now Machine::clocks() const {
  const Time now = world_.timeline.now();
  return {.wall = WallTime(Duration(kWallStart + now + wall_offset_)),
          .boot = BootTime(Duration(now - boot_origin_))};
}

std::vector<std::uint64_t> Machine::of_run(const agent::RunKey& run) const {
  std::vector<std::uint64_t> found;
  for (const auto& [pid, process] : processes_) {
    if (process.run == run) found.push_back(pid);
  }
  return found;
}

std::uint64_t Machine::spawn_worker(const agent::RunKey& run, bool heeds_claim) {
  const std::uint64_t pid = next_pid_++;
  processes_[pid] = Process{.pid = pid, .kind = Process::Kind::Worker, .run = run};
  workers_[pid] = std::make_unique<WorkerModel>(world_, *this, run, pid, heeds_claim);
  workers_[pid]->start();
  return pid;
}

std::uint64_t Machine::exec_rank(std::uint64_t worker, const agent::RunKey& run,
                                 const v1::RankProcess& rank) {
  const std::uint64_t pid = next_pid_++;
  Process& process = processes_[pid];
  process = Process{
      .pid = pid, .kind = Process::Kind::Rank, .run = run, .rank = rank.rank(), .parent = worker};
  process.devices.assign(rank.devices().begin(), rank.devices().end());
  world_.watch.exec(*this, process);
  return pid;
}

void Machine::leave_child(const Process& rank) {
  const std::uint64_t pid = next_pid_++;
  processes_[pid] = Process{.pid = pid,
                            .kind = Process::Kind::Child,
                            .run = rank.run,
                            .rank = rank.rank,
                            .parent = 0,
                            .devices = rank.devices};
}

void Machine::end(std::uint64_t pid, std::int32_t code, std::int32_t signal, DeathCause cause) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  const Process process = found->second;
  processes_.erase(found);
  world_.say([&] {
    return fmt::format("{}: {} of {} ended: {} (code {}, signal {})", name_.str(),
                       describe(process), describe(process.run), to_string(cause), code, signal);
  });
  switch (process.kind) {
    case Process::Kind::Child: return;
    case Process::Kind::Rank:
      world_.watch.died(*this, process, code, signal, cause);
      world_.training.rank_ended(process, cause);
      if (const auto worker = workers_.find(process.parent); worker != workers_.end())
        worker->second->child_ended(process, code, signal);
      return;
    case Process::Kind::Worker: {
      // The worker is not destroyed here, because this may be its own call. What it had scheduled
      // dies now.
      std::unique_ptr<WorkerModel> worker = std::move(workers_[pid]);
      workers_.erase(pid);
      worker->gone();
      world_.timeline.after(0, [kept = std::shared_ptr<WorkerModel>(std::move(worker))] {});
      std::vector<std::uint64_t> ranks;
      for (const auto& [other, candidate] : processes_) {
        if (candidate.kind == Process::Kind::Rank && candidate.parent == pid)
          ranks.push_back(other);
      }
      for (const std::uint64_t rank : ranks) end(rank, -1, 9, DeathCause::WorkerDied);
      agent_->poke();
      return;
    }
  }
}

void Machine::sigterm_worker(std::uint64_t pid) {
  if (const auto worker = workers_.find(pid); worker != workers_.end()) worker->second->sigterm();
}

void Machine::freeze_worker(std::uint64_t pid) {
  workers_.at(pid)->pause();
  agent_->check_frozen(processes_.at(pid).run, pid);
}

void Machine::thaw_worker(std::uint64_t pid) {
  if (frozen(pid)) workers_.at(pid)->resume();
}

bool Machine::frozen(std::uint64_t pid) const {
  const auto worker = workers_.find(pid);
  return worker != workers_.end() && worker->second->paused();
}

void Machine::power_off(bool lose_files) {
  if (!on_) return;
  on_ = false;
  agent_->crash();
  world_.network.machine_off(*this);
  while (!processes_.empty()) {
    // Workers end last, because their ranks did not die because of them.
    auto victim = processes_.begin();
    for (auto it = processes_.begin(); it != processes_.end(); ++it) {
      if (it->second.kind != Process::Kind::Worker) victim = it;
    }
    end(victim->first, -1, 9, DeathCause::PowerLost);
  }
  if (!lose_files) return;
  // The launch path has no sync, so any part of a run directory may be missing on the disk.
  Rng& rng = world_.rng;
  for (auto it = disk_.runs.begin(); it != disk_.runs.end();) {
    RunDir& dir = *it->second;
    if (rng.one_in(3)) {
      it = disk_.runs.erase(it);
      continue;
    }
    if (rng.one_in(4)) dir.claim.reset();
    if (rng.one_in(4)) dir.lease.reset();
    if (rng.one_in(6)) dir.launch.reset();
    if (!dir.launch) dir.launch_boot = BootId();
    if (rng.one_in(3))
      dir.events.resize(static_cast<std::size_t>(rng.below(dir.events.size() + 1)));
    if (rng.one_in(4)) dir.marks.resize(static_cast<std::size_t>(rng.below(dir.marks.size() + 1)));
    ++it;
  }
}

void Machine::power_on() {
  if (on_) return;
  on_ = true;
  boot_ = BootId(fmt::format("{}-boot-{}", name_.str(), ++boots_));
  boot_origin_ = world_.timeline.now() - kMillisecond;
  agent_->launch();
}

void Machine::wipe_state() {
  disk_.identity.reset();
  disk_.runs.clear();
  copy_.reset();
}

void Machine::copy_state() {
  if (disk_.identity) copy_ = copy_of(disk_);
}

void Machine::put_back_state() { disk_ = copy_of(*copy_); }

}  // namespace muster::sim
