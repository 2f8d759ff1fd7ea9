#include "tests/sim/worker_model.h"

#include <fmt/format.h>

#include "tests/sim/agent_model.h"
#include "tests/sim/world.h"

namespace muster::sim {

WorkerModel::WorkerModel(World& world, Machine& machine, agent::RunKey run, std::uint64_t pid,
                         bool heeds_claim)
    : Actor(world.timeline),
      world_(world),
      machine_(machine),
      run_(std::move(run)),
      pid_(pid),
      heeds_claim_(heeds_claim) {}

void WorkerModel::start() {
  begin_incarnation();
  after(world_.rng.skewed(kMillisecond, world_.rng.one_in(10) ? 3 * kSecond : 40 * kMillisecond),
        [this] { claim(); });
}

void WorkerModel::write(WorkerEvent event) {
  event.at = machine_.clocks().wall;
  event.boot = machine_.clocks().boot;
  dir_->events.push_back(std::move(event));
  machine_.agent().poke();
}

void WorkerModel::claim() {
  const auto found = machine_.disk().runs.find(run_);
  if (found == machine_.disk().runs.end() || (found->second->claim && heeds_claim_))
    return machine_.end(pid_, 0, 0, DeathCause::Ended);
  dir_ = found->second;
  dir_->claim = Claim{.pid = pid_, .boot = machine_.boot()};
  machine_.note_claimed(pid_);
  machine_.agent().poke();
  if (!dir_->launch || dir_->launch_boot != machine_.boot()) {
    write({.kind = WorkerEvent::Kind::StartFailed});
    stopping_ = DeathCause::StartFailed;
    return sweep_when_done();
  }
  launch_ = *dir_->launch;
  const JobPlan& plan = world_.scenario.plan(launch_.job_name());
  stop_grace_ = plan.stop_grace;
  term_delay_ = plan.term_delay;
  const std::optional<Lease> until = lease();
  if (world_.mutant != Mutant::WorkerIgnoresLease &&
      (!until || until->until <= machine_.clocks().boot)) {
    stopping_ = DeathCause::Orphaned;
    record_stop(DeathCause::Orphaned);
    return sweep_when_done();
  }
  if (plan.launch_fails) {
    after(kMillisecond, [this] {
      write({.kind = WorkerEvent::Kind::StartFailed});
      request_stop(DeathCause::StartFailed);
    });
    return;
  }
  check_lease();
  exec_next(0);
}

void WorkerModel::exec_next(int index) {
  if (stopping_) return sweep_when_done();
  if (index == launch_.ranks_size()) {
    // A successful exec is reported over a pipe, an end by a signal. So the end of a quick rank may
    // be recorded first.
    after(world_.rng.skewed(0, 30 * kMillisecond), [this] { all_execd(); });
    return;
  }
  const v1::RankProcess& rank = launch_.ranks(index);
  const std::uint64_t pid = machine_.exec_rank(pid_, run_, rank);
  running_[rank.rank()] = pid;
  write({.kind = WorkerEvent::Kind::RankStarted, .rank = rank.rank(), .pid = pid});
  world_.training.rank_started(machine_, machine_.processes().at(pid), launch_);
  after(world_.rng.skewed(10 * kMicrosecond, 2 * kMillisecond),
        [this, index] { exec_next(index + 1); });
}

void WorkerModel::all_execd() {
  all_started_ = true;
  if (!stopping_) write({.kind = WorkerEvent::Kind::Started});
  sweep_when_done();
}

void WorkerModel::child_ended(const Process& rank, std::int32_t code, std::int32_t signal) {
  after(world_.rng.skewed(10 * kMicrosecond, 3 * kMillisecond),
        [this, rank, code, signal] { record_exit(rank, code, signal); });
}

void WorkerModel::record_exit(const Process& rank, std::int32_t code, std::int32_t signal) {
  write({.kind = WorkerEvent::Kind::Exited,
         .rank = rank.rank,
         .pid = rank.pid,
         .code = code,
         .signal = signal,
         .stop_requested = stop_recorded_});
  running_.erase(rank.rank);
  sweep_when_done();
}

void WorkerModel::sigterm() {
  after(world_.rng.skewed(10 * kMicrosecond, 5 * kMillisecond),
        [this] { request_stop(DeathCause::Stopped); });
}

void WorkerModel::request_stop(DeathCause why) {
  if (stopping_ || dir_ == nullptr) return;
  stopping_ = why;
  if (world_.mutant == Mutant::SigtermBeforeWrite) {
    after(world_.rng.skewed(kMillisecond, 50 * kMillisecond), [this, why] { record_stop(why); });
  } else {
    record_stop(why);
  }
  if (why == DeathCause::StartFailed || stop_grace_ == 0) {
    kill_ranks(why);
  } else {
    for (const auto& [rank, pid] : running_) {
      if (term_delay_ == kNever) continue;
      after(world_.rng.skewed(kMillisecond, term_delay_ + kMillisecond),
            [this, pid = pid, why] { machine_.end(pid, -1, 15, why); });
    }
    after(stop_grace_, [this, why] { kill_ranks(why); });
  }
  sweep_when_done();
}

void WorkerModel::record_stop(DeathCause why) {
  stop_recorded_ = true;
  write({.kind = WorkerEvent::Kind::StopRequested, .orphaned = why == DeathCause::Orphaned});
}

void WorkerModel::kill_ranks(DeathCause why) {
  const auto ranks = running_;
  for (const auto& [rank, pid] : ranks) machine_.end(pid, -1, 9, why);
}

std::optional<Lease> WorkerModel::lease() const {
  const auto found = machine_.disk().runs.find(run_);
  if (found == machine_.disk().runs.end() || !found->second->lease ||
      found->second->lease->boot != machine_.boot())
    return std::nullopt;
  return found->second->lease;
}

void WorkerModel::check_lease() {
  if (stopping_ || world_.mutant == Mutant::WorkerIgnoresLease) return;
  const std::optional<Lease> until = lease();
  const BootTime now = machine_.clocks().boot;
  if (!until || until->until <= now) {
    world_.watch.orphaned(machine_, run_, until.has_value());
    return request_stop(DeathCause::Orphaned);
  }
  after((until->until - now).count(), [this] { check_lease(); });
}

void WorkerModel::sweep_when_done() {
  if (sweeping_ || !running_.empty() || !(all_started_ || stopping_)) return;
  sweeping_ = true;
  after(world_.rng.skewed(kMillisecond, world_.rng.one_in(6) ? 3 * kSecond : 20 * kMillisecond),
        [this] {
          for (const std::uint64_t pid : machine_.of_run(run_)) {
            if (pid != pid_) machine_.end(pid, -1, 9, DeathCause::Swept);
          }
          write({.kind = WorkerEvent::Kind::Swept});
          machine_.end(pid_, 0, 0, DeathCause::Ended);
        });
}

}  // namespace muster::sim
