#include "tests/sim/agent_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/lease.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

constexpr Duration kWorkerMargin = std::chrono::seconds(5);

Duration grace_of(const v1::NodeLaunch& launch) {
  return std::chrono::seconds(launch.orphan_grace().seconds()) +
         std::chrono::nanoseconds(launch.orphan_grace().nanos());
}

}  // namespace

Timeline& AgentModel::world_timeline(World& world) { return world.timeline; }

void AgentModel::launch() {
  if (alive() || !machine_.on()) return;
  begin_incarnation();
  Disk& disk = machine_.disk();
  if (!disk.identity)
    disk.identity = agent::Identity{
        .instance = InstanceId(
            fmt::format("{}-instance-{:08x}", machine_.name().str(), world_.rng.below(1U << 31U)))};
  self_ = {.instance = disk.identity->instance, .boot_id = machine_.boot()};
  link_.reset();
  welcomed_ = poked_ = false;
  identity_dirty_ = false;
  controller_.emplace(*disk.identity);
  outbox_ = agent::Outbox();
  stale_orders_.reset();
  scans_.clear();
  uploads_.clear();
  spawned_.clear();
  sweeping_.clear();
  signalled_.clear();
  acknowledged_from_ = hello_sent_ = BootTime{};
  heartbeats_ = unanswered_ = 0;
  backoff_ = 50 * kMillisecond;
  effects_left_.reset();
  known_before_.clear();
  world_.say([&] {
    return fmt::format("{}: agent started, instance '{}'", machine_.name().str(),
                       self_.instance.str());
  });
  after(world_.rng.skewed(kMillisecond, 80 * kMillisecond), [this] {
    if (world_.mutant == Mutant::LoseSpool) {
      for (const auto& [run, dir] : machine_.disk().runs) known_before_.insert(run);
    }
    if (world_.mutant == Mutant::StopOnAbsence) stop_what_is_not_mentioned();
    if (world_.mutant == Mutant::StartTwice) {
      for (const auto& [run, dir] : machine_.disk().runs) {
        if (dir->launch && dir->launch_boot == self_.boot_id && observe(run, *dir).swept == false)
          machine_.spawn_worker(run, false);
      }
    }
    // Before any order: handles what the last incarnation left behind.
    for (const agent::Action& action : agent::reconcile(self_, nullptr, observe(), true)) {
      perform(action);
      if (!alive()) return;
    }
    poke();
    connect();
  });
}

void AgentModel::crash() {
  if (!alive()) return;
  world_.say([&] { return fmt::format("{}: agent died", machine_.name().str()); });
  end_incarnation();
  if (link_ != nullptr && link_->agent_open) world_.network.closed_by_agent(link_);
  link_.reset();
}

void AgentModel::poke() {
  if (!alive() || poked_) return;
  poked_ = true;
  after(world_.rng.skewed(20 * kMicrosecond, 2 * kMillisecond), [this] {
    poked_ = false;
    refresh();
  });
}

// --- what is there -------------------------------------------------------------------------------

std::map<agent::RunKey, agent::RunSeen> AgentModel::observe() const {
  std::map<agent::RunKey, agent::RunSeen> seen;
  for (const auto& [run, dir] : machine_.disk().runs) seen[run] = observe(run, *dir);
  return seen;
}

agent::RunSeen AgentModel::observe(const agent::RunKey& run, const RunDir& dir) const {
  agent::RunSeen seen;
  if (dir.launch) {
    seen.launch_sound = true;
    seen.boot_id = dir.launch_boot;
    for (const v1::RankProcess& rank : dir.launch->ranks()) seen.ranks.push_back(rank.rank());
    seen.uploads = dir.launch->has_upload();
    seen.uploads_logs = dir.launch->has_logs_upload();
  }
  if (!dir.claim) {
    const auto spawned = spawned_.find(run);
    const bool may_claim =
        spawned != spawned_.end() && (spawned->second == 0 || machine_.alive(spawned->second));
    seen.worker = may_claim ? agent::WorkerState::Spawned : agent::WorkerState::None;
  } else if (dir.claim->pid == 0) {
    seen.worker = agent::WorkerState::Never;
  } else {
    const bool lives = dir.claim->boot == self_.boot_id && machine_.alive(dir.claim->pid);
    seen.worker = lives ? agent::WorkerState::Alive : agent::WorkerState::Dead;
    seen.worker_pid = dir.claim->pid;
  }
  if (dir.claim && seen.boot_id.empty()) seen.boot_id = dir.claim->boot;
  bool orphaned = false;
  for (const WorkerEvent& event : dir.events) {
    switch (event.kind) {
      case WorkerEvent::Kind::RankStarted: seen.pids[event.rank] = event.pid; break;
      case WorkerEvent::Kind::Started:
        seen.started = true;
        seen.started_at = event.at;
        break;
      case WorkerEvent::Kind::StartFailed:
        seen.start_failed = "executing '/bin/train': no such file or directory";
        seen.start_failed_at = event.at;
        break;
      case WorkerEvent::Kind::Exited: {
        const bool shown = dir.launch && event.code == 0 &&
                           world_.scenario.plan(dir.launch->job_name()).success_shown;
        seen.exits[event.rank] = {.rank = event.rank,
                                  .code = event.code,
                                  .signal = event.signal,
                                  .stop_requested = event.stop_requested,
                                  .at = event.at,
                                  .boot = event.boot,
                                  .evidence = event.code > 0 ? "RuntimeError: it broke" : "",
                                  .success_seen = shown};
        break;
      }
      case WorkerEvent::Kind::StopRequested:
        orphaned = orphaned || (event.orphaned && !seen.stop_requested);
        seen.stop_requested = true;
        break;
      case WorkerEvent::Kind::Swept:
        seen.swept = seen.swept_by_worker = true;
        seen.swept_at = event.at;
        seen.swept_why = v1::SWEPT_WHY_ENDED;
        if (seen.stop_requested) seen.swept_why = v1::SWEPT_WHY_STOPPED;
        if (orphaned) seen.swept_why = v1::SWEPT_WHY_ORPHANED;
        break;
    }
  }
  for (const AgentMark& mark : dir.marks) {
    switch (mark.kind) {
      case AgentMark::Kind::Refused:
        seen.refused = {mark.why, mark.text};
        seen.refused_at = mark.at;
        break;
      case AgentMark::Kind::Swept:
        if (seen.swept) break;
        seen.swept = true;
        seen.swept_at = mark.at;
        seen.swept_why = mark.swept_why;
        break;
      case AgentMark::Kind::FirstStep:
        seen.first_step = mark.step;
        seen.first_step_at = mark.at;
        break;
      case AgentMark::Kind::ClockSkewed:
        seen.clock_ahead = mark.ahead;
        seen.clock_ahead_at = mark.at;
        break;
      case AgentMark::Kind::Uploaded:
        seen.note_outputs({.problem = mark.text,
                           .step = mark.upload.step,
                           .seal = mark.upload.seal,
                           .logs = mark.upload.logs,
                           .removed = mark.removed,
                           .at = mark.at});
        break;
    }
  }
  return seen;
}

void AgentModel::note_first_steps() {
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (!dir->launch || std::ranges::any_of(dir->marks, [](const AgentMark& mark) {
          return mark.kind == AgentMark::Kind::FirstStep;
        }))
      continue;
    for (const v1::RankProcess& rank : dir->launch->ranks()) {
      const std::int64_t step = world_.training.step_of(run, rank.rank());
      if (step < 0) continue;
      mark(run, {.kind = AgentMark::Kind::FirstStep, .step = step});
      break;
    }
  }
}

void AgentModel::note_clock_skew(Duration ahead) {
  for (const auto& [run, seen] : observe()) {
    if (!seen.started || seen.swept || seen.clock_ahead) continue;
    mark(run, {.kind = AgentMark::Kind::ClockSkewed, .ahead = ahead});
  }
}

void AgentModel::mark(const agent::RunKey& run, AgentMark mark) {
  const auto dir = machine_.disk().runs.find(run);
  if (dir == machine_.disk().runs.end()) return;
  mark.at = machine_.clocks().wall;
  dir->second->marks.push_back(std::move(mark));
}

// --- what is to be done --------------------------------------------------------------------------

void AgentModel::refresh() {
  note_first_steps();
  for (int round = 0; round < 16; ++round) {
    const std::optional<v1::Orders> orders = ordered();
    if (orders) obey_uploads(*orders);
    const std::vector<agent::Action> actions =
        agent::reconcile(self_, orders ? &*orders : nullptr, observe(), false);
    bool did_something = false;
    for (const agent::Action& action : actions) {
      did_something = perform(action) || did_something;
      if (!alive()) return;
    }
    if (!did_something) break;
  }
  send_facts();
}

// What reconcile() is given. The mutants change it.
std::optional<v1::Orders> AgentModel::ordered() const {
  if (stale_orders_) return stale_orders_;
  if (controller_->orders() == nullptr) return std::nullopt;
  v1::Orders orders = *controller_->orders();
  for (v1::Order& order : *orders.mutable_orders()) {
    if (!order.has_run()) continue;
    if (world_.mutant == Mutant::IgnoreBoot) order.mutable_run()->set_boot_id(self_.boot_id.str());
    if (world_.mutant == Mutant::IgnoreInstance)
      order.mutable_run()->set_instance(self_.instance.str());
  }
  return orders;
}

bool AgentModel::perform(const agent::Action& action) {
  if (effects_left_ && (*effects_left_)-- == 0) {
    world_.storm.agent_died(machine_);
    crash();
    return false;
  }
  return std::visit([this](const auto& one) { return perform_one(one); }, action);
}

bool AgentModel::perform_one(const agent::StartRun& action) {
  if (machine_.disk_full()) {
    world_.coverage.hit(Fault::DiskFull);
    return perform_one(agent::RefuseRun{
        .run = action.run, .why = v1::START_FAILURE_DISK, .text = "disk full: 3 MiB free"});
  }
  auto dir = std::make_shared<RunDir>();
  dir->launch = action.launch;
  dir->launch_boot = self_.boot_id;
  const Duration grace = grace_of(action.launch);
  dir->lease =
      Lease{.until = acknowledged_from_ + grace + lease_step(grace), .boot = self_.boot_id};
  machine_.disk().runs[action.run] = std::move(dir);
  spawned_[action.run] = 0;
  world_.say([&] {
    return fmt::format("{}: agent starts {}", machine_.name().str(), describe(action.run));
  });
  after(world_.rng.skewed(20 * kMicrosecond,
                          world_.rng.one_in(8) ? 500 * kMillisecond : 3 * kMillisecond),
        [this, run = action.run] {
          spawned_[run] = machine_.spawn_worker(run, world_.mutant != Mutant::StartTwice);
        });
  return true;
}

bool AgentModel::perform_one(const agent::RefuseRun& action) {
  std::shared_ptr<RunDir>& dir = machine_.disk().runs[action.run];
  if (dir == nullptr) dir = std::make_shared<RunDir>();
  // The worker was faster; the next reconcile() adopts it.
  if (dir->claim && dir->claim->pid != 0) return true;
  if (world_.mutant != Mutant::RefuseWithoutClaim) {
    dir->claim = Claim{.pid = 0, .boot = self_.boot_id};
  } else {
    mark(action.run, {.kind = AgentMark::Kind::Swept, .swept_why = v1::SWEPT_WHY_NEVER_STARTED});
  }
  world_.say([&] {
    return fmt::format("{}: agent refuses {}: {}", machine_.name().str(), describe(action.run),
                       action.text);
  });
  if (effects_left_ && (*effects_left_)-- == 0) {
    world_.storm.agent_died(machine_);
    crash();
    return false;
  }
  mark(action.run, {.kind = AgentMark::Kind::Refused, .why = action.why, .text = action.text});
  return true;
}

bool AgentModel::perform_one(const agent::SignalStop& action) {
  if (!signalled_.emplace(action.run, machine_.clocks().boot).second) return false;
  const auto dir = machine_.disk().runs.find(action.run);
  if (dir == machine_.disk().runs.end() || !dir->second->claim) return false;
  world_.say([&] {
    return fmt::format("{}: agent stops {}", machine_.name().str(), describe(action.run));
  });
  world_.watch.stopping(machine_, action.run);
  machine_.sigterm_worker(dir->second->claim->pid);
  return true;
}

bool AgentModel::perform_one(const agent::SweepRun& action) {
  if (!sweeping_.insert(action.run).second) return false;
  if (world_.mutant == Mutant::SkipSweep) {
    mark(action.run, {.kind = AgentMark::Kind::Swept, .swept_why = action.why});
    return true;
  }
  world_.say([&] {
    return fmt::format("{}: agent sweeps {}: {}", machine_.name().str(), describe(action.run),
                       v1::SweptWhy_Name(action.why));
  });
  after(world_.rng.skewed(kMillisecond, 30 * kMillisecond),
        [this, run = action.run, why = action.why] { finish_sweep(run, why); });
  return true;
}

void AgentModel::finish_sweep(const agent::RunKey& run, v1::SweptWhy why) {
  world_.watch.sweeping(machine_, run);
  for (const std::uint64_t pid : machine_.of_run(run)) machine_.end(pid, -1, 9, DeathCause::Swept);
  after(world_.rng.skewed(kMillisecond, 10 * kMillisecond), [this, run, why] {
    sweeping_.erase(run);
    if (!machine_.of_run(run).empty()) return poke();
    mark(run, {.kind = AgentMark::Kind::Swept, .swept_why = why});
    poke();
  });
}

bool AgentModel::perform_one(const agent::MarkSwept& action) {
  mark(action.run, {.kind = AgentMark::Kind::Swept, .swept_why = action.why});
  return true;
}

bool AgentModel::perform_one(const agent::ForgetRun& action) {
  send_facts();
  machine_.disk().runs.erase(action.run);
  spawned_.erase(action.run);
  scans_.erase(action.run);
  outbox_.forget(action.run);
  return true;
}

// As agent/run does: a stop has its grace and a margin. The end of the lease has at most the
// margin: before the controller relies on that end, it waits for the grace of a stop as well.
std::optional<BootTime> AgentModel::must_obey_by(const agent::RunKey& run) const {
  const auto found = machine_.disk().runs.find(run);
  if (found == machine_.disk().runs.end() || !found->second->launch) return std::nullopt;
  const RunDir& dir = *found->second;
  const Duration grace = std::chrono::seconds(dir.launch->stop_grace().seconds()) +
                         std::chrono::nanoseconds(dir.launch->stop_grace().nanos());
  std::optional<BootTime> by;
  const auto at_latest = [&by](BootTime time) { by = std::min(by.value_or(time), time); };
  const auto written =
      std::ranges::find(dir.events, WorkerEvent::Kind::StopRequested, &WorkerEvent::kind);
  if (written != dir.events.end()) {
    at_latest(written->boot + grace + kWorkerMargin);
  } else if (dir.lease && dir.lease->boot == self_.boot_id) {
    at_latest(
        dir.lease->until +
        std::min<Duration>(kWorkerMargin, std::max<Duration>(grace, std::chrono::seconds(1))));
  }
  if (const auto signalled = signalled_.find(run); signalled != signalled_.end())
    at_latest(signalled->second + grace + kWorkerMargin);
  return by;
}

void AgentModel::check_frozen(const agent::RunKey& run, std::uint64_t worker) {
  after(50 * kMillisecond, [this, run, worker] {
    if (!machine_.frozen(worker) || world_.mutant == Mutant::FrozenWorkerLives) return;
    const std::optional<BootTime> by = must_obey_by(run);
    if (!by || *by > machine_.clocks().boot) return check_frozen(run, worker);
    world_.say([&] {
      return fmt::format("{}: agent kills the frozen worker of {}", machine_.name().str(),
                         describe(run));
    });
    const bool asked = signalled_.contains(run);
    ++world_.coverage.seen[asked ? "frozen worker killed after a stop"
                                 : "frozen worker killed after its lease"];
    world_.watch.harmed(run);
    machine_.end(worker, -1, 9, DeathCause::Killed);
  });
}

void AgentModel::stop_what_is_not_mentioned() {
  for (const auto& [run, dir] : machine_.disk().runs) {
    const bool mentioned =
        controller_->orders() != nullptr &&
        std::ranges::any_of(controller_->orders()->orders(), [&](const v1::Order& order) {
          return order.job_id() == run.first.str() && order.attempt() == run.second.value;
        });
    if (!mentioned && dir->claim && dir->claim->pid != 0)
      perform_one(agent::SignalStop{.run = run});
  }
}

}  // namespace muster::sim
