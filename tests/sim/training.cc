#include "tests/sim/training.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/world.h"

namespace muster::sim {

bool Training::Gang::whole() const {
  return ranks.size() == world_size &&
         std::ranges::all_of(ranks, [](const auto& rank) { return rank.second.alive; });
}

std::string Training::path_of(const agent::RunKey& run, std::int64_t step) {
  return fmt::format("/out/{}.{}/iter_{:07d}", run.first.str(), run.second.value, step);
}

void Training::rank_started(Machine& machine, const Process& process,
                            const v1::NodeLaunch& launch) {
  Gang& gang = gangs_[process.run];
  if (gang.plan == nullptr) {
    gang.plan = &world_.scenario.plan(launch.job_name());
    gang.world_size = launch.watching().world_size();
    gang.from = launch.has_resume() ? launch.resume().step() : 0;
    gang.from_bad =
        gang.from == gang.plan->bad_checkpoint &&
        launch.resume().source() == path_of({process.run.first, AttemptNo(1)}, gang.from);
  }
  gang.ranks[process.rank] =
      Rank{.machine = &machine, .pid = process.pid, .step = -1, .alive = true};
  if (gang.plan->leaves_children) machine.leave_child(process);
  const auto run = process.run;
  const std::uint32_t rank = process.rank;
  const std::uint64_t pid = process.pid;
  if (gang.plan->total_steps == 0) {
    world_.timeline.after(world_.rng.skewed(0, 30 * kMillisecond), [this, run, rank, pid] {
      Gang& later = gangs_.at(run);
      if (later.ranks.at(rank).pid == pid && later.ranks.at(rank).alive) end_well(run, later, rank);
    });
  } else if (!gang.plan->lockstep) {
    world_.timeline.after(gang.plan->step_time,
                          [this, run, rank, pid] { tick_rank(run, rank, pid); });
  } else if (gang.whole()) {
    world_.timeline.after(gang.plan->step_time, [this, run] { tick_gang(run); });
  }
}

void Training::rank_ended(const Process& process, DeathCause cause) {
  const auto found = gangs_.find(process.run);
  if (found == gangs_.end()) return;
  Gang& gang = found->second;
  const auto ended = gang.ranks.find(process.rank);
  if (ended == gang.ranks.end() || ended->second.pid != process.pid) return;
  ended->second.alive = false;
  if (cause == DeathCause::Ended || !gang.plan->lockstep || !gang.plan->peers_notice) return;
  for (const auto& [number, peer] : gang.ranks) {
    if (!peer.alive) continue;
    world_.timeline.after(world_.rng.skewed(50 * kMillisecond, 3 * kSecond),
                          [machine = peer.machine, pid = peer.pid] {
                            machine->end(pid, 1, 0, DeathCause::PeerLost);
                          });
  }
}

std::int64_t Training::step_of(const agent::RunKey& run, std::uint32_t rank) const {
  const auto found = gangs_.find(run);
  if (found == gangs_.end()) return -1;
  const auto seen = found->second.ranks.find(rank);
  return seen == found->second.ranks.end() ? -1 : seen->second.step;
}

const std::map<std::int64_t, SavedCheckpoint>& Training::saved(const agent::RunKey& run) const {
  static const std::map<std::int64_t, SavedCheckpoint> nothing;
  const auto found = gangs_.find(run);
  return found == gangs_.end() ? nothing : found->second.saved;
}

bool Training::advance(const agent::RunKey& run, Gang& gang, std::uint32_t number) {
  Rank& rank = gang.ranks.at(number);
  const std::int64_t next = std::max(rank.step, gang.from) + 1;
  const JobPlan& plan = *gang.plan;
  const bool bug = gang.from_bad || (plan.error_at == next &&
                                     number == static_cast<std::uint32_t>(next) % gang.world_size);
  if (bug || (plan.flaky > 0 && world_.rng.one_in(plan.flaky * gang.world_size))) {
    rank.machine->end(rank.pid, 1, 0, DeathCause::Failed);
    return false;
  }
  rank.step = next;
  world_.watch.stepped(*rank.machine, run, number, next);
  return true;
}

void Training::tick_gang(const agent::RunKey& run) {
  Gang& gang = gangs_.at(run);
  if (!gang.whole()) return;
  for (const auto& [number, rank] : gang.ranks) {
    if (!advance(run, gang, number)) return;
  }
  const std::int64_t step = gang.ranks.begin()->second.step;
  const bool saves = gang.plan->checkpoint_every > 0 && step % gang.plan->checkpoint_every == 0;
  if (saves) {
    for (const auto& [number, rank] : gang.ranks) save(run, gang, number, step);
  }
  world_.timeline.after((saves ? gang.plan->save_time : 0) + gang.plan->step_time, [this, run] {
    Gang& later = gangs_.at(run);
    if (!later.whole()) return;
    if (later.ranks.begin()->second.step < later.plan->total_steps) return tick_gang(run);
    for (const auto& [number, rank] : later.ranks) {
      world_.timeline.after(world_.rng.skewed(0, 200 * kMillisecond),
                            [this, run, number = number, pid = rank.pid] {
                              Gang& last = gangs_.at(run);
                              if (last.ranks.at(number).alive && last.ranks.at(number).pid == pid)
                                end_well(run, last, number);
                            });
    }
  });
}

void Training::tick_rank(const agent::RunKey& run, std::uint32_t number, std::uint64_t pid) {
  Gang& gang = gangs_.at(run);
  const Rank& rank = gang.ranks.at(number);
  if (!rank.alive || rank.pid != pid) return;
  if (rank.step >= gang.plan->total_steps) return end_well(run, gang, number);
  if (!advance(run, gang, number)) return;
  const bool saves =
      gang.plan->checkpoint_every > 0 && rank.step % gang.plan->checkpoint_every == 0;
  if (saves) save(run, gang, number, rank.step);
  world_.timeline.after((saves ? gang.plan->save_time : 0) + gang.plan->step_time +
                            world_.rng.between(0, 5 * kMillisecond),
                        [this, run, number, pid] { tick_rank(run, number, pid); });
}

void Training::save(const agent::RunKey& run, Gang& gang, std::uint32_t number, std::int64_t step) {
  gang.saved[step].expected = gang.world_size;
  const Rank& rank = gang.ranks.at(number);
  world_.timeline.after(world_.rng.skewed(kMillisecond, gang.plan->save_time - kMillisecond),
                        [this, run, number, step, machine = rank.machine, pid = rank.pid] {
                          if (!machine->alive(pid)) return;
                          SavedCheckpoint& checkpoint = gangs_.at(run).saved[step];
                          checkpoint.shards.insert(number);
                          if (checkpoint.shards.size() == checkpoint.expected)
                            checkpoint.sealed = true;
                        });
}

void Training::end_well(const agent::RunKey&, Gang& gang, std::uint32_t number) {
  Rank& rank = gang.ranks.at(number);
  rank.done = true;
  rank.machine->end(rank.pid, 0, 0, DeathCause::Ended);
}

}  // namespace muster::sim
