// Starts, stops, devices and attempts: the promises that keep two gangs from disturbing each other.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/invariant.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

class DeviceExclusive : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "device-exclusive"; }
  void exec(const Machine& machine, const Process& process) override {
    for (const auto& [pid, other] : machine.processes()) {
      if (other.run == process.run) continue;
      for (const std::uint32_t device : process.devices) {
        if (std::ranges::find(other.devices, device) == other.devices.end()) continue;
        return broken(fmt::format("device {} of {}: {} of {} was exec'd while {} of {} lives",
                                  device, machine.name().str(), describe(process),
                                  describe(process.run), describe(other), describe(other.run)));
      }
    }
  }
};

class PortExclusive : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "port-exclusive"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr) return;
    for (const auto& [id, job] : before.jobs) {
      for (const core::AttemptRecord& attempt : job.attempts) {
        const core::PlacedNode& first = attempt.parts.front().placed;
        if (attempt.master_port != placed->master_port ||
            first.address != placed->nodes.front().address)
          continue;
        const agent::RunKey run(id, attempt.number);
        // A worker that was refused has nothing that uses the port.
        if (std::ranges::any_of(world_.machine(first.node).processes(), [&](const auto& process) {
              return process.second.run == run &&
                     (process.second.kind != Process::Kind::Worker || process.second.claimed);
            }))
          broken(fmt::format("job {} got port {} of {}, where {} still lives", placed->job.str(),
                             placed->master_port, first.node.str(), describe(run)));
      }
    }
  }
};

class NoStepAfterNext : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "no-step-after-next-exec"; }
  void stepped(const Machine& machine, const agent::RunKey& run, std::uint32_t rank,
               std::int64_t step) override {
    const AttemptNo newest = world_.watch.book().newest_execd(run.first);
    if (newest > run.second) {
      broken(fmt::format("rank {} of {} on {} completed step {} after attempt {} had exec'd", rank,
                         describe(run), machine.name().str(), step, newest.value));
    }
  }
};

class NoCheckpointAfterNext : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "no-checkpoint-after-next-exec"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* checkpoint = std::get_if<core::CheckpointCompleted>(&event.body);
    if (checkpoint == nullptr) return;
    const AttemptNo newest = world_.watch.book().newest_execd(checkpoint->job);
    // Not if the journal has lost the newer attempt: then the checkpoints of the attempt before it
    // are reported again.
    if (newest > checkpoint->attempt &&
        before.jobs.at(checkpoint->job).attempt(newest) != nullptr) {
      broken(fmt::format("step {} of attempt {} of {} was accepted after attempt {} had exec'd",
                         checkpoint->step, checkpoint->attempt.value, checkpoint->job.str(),
                         newest.value));
    }
  }
};

// At most one attempt of a job can advance: a whole gang (lockstep), or any rank at all (not in
// lockstep).
class OneCurrentAttempt : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "one-current-attempt"; }
  void exec(const Machine& machine, const Process& process) override {
    const auto job = world_.controller.ledger().jobs.find(process.run.first);
    if (job == world_.controller.ledger().jobs.end()) return;
    const JobPlan& plan = world_.scenario.plan(job->second.spec.name());
    if (plan.lockstep) return;
    for (const auto& other : world_.machines) {
      for (const auto& [pid, candidate] : other->processes()) {
        if (candidate.kind != Process::Kind::Rank || candidate.run.first != process.run.first ||
            candidate.run.second == process.run.second)
          continue;
        return broken(fmt::format(
            "{} of {} was exec'd on {} while {} of {} lives on {}, and the job is not in lockstep",
            describe(process), describe(process.run), machine.name().str(), describe(candidate),
            describe(candidate.run), other->name().str()));
      }
    }
  }
  void folded(const core::Event& event, const core::Ledger& after) override {
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr) return;
    const core::JobRecord& job = after.jobs.at(placed->job);
    const auto open = std::ranges::count_if(job.attempts, [](const core::AttemptRecord& attempt) {
      return !core::is_over(attempt.state);
    });
    if (open != 1)
      broken(fmt::format("job {} has {} attempts that have not ended", placed->job.str(), open));
  }
};

class StartOnce : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "start-once"; }
  void exec(const Machine& machine, const Process& process) override {
    const auto attempt = world_.watch.book().attempts.find(process.run);
    if (attempt != world_.watch.book().attempts.end() &&
        attempt->second.execd.contains(process.rank)) {
      broken(fmt::format("rank {} of {} was exec'd a second time, on {}", process.rank,
                         describe(process.run), machine.name().str()));
    }
  }
};

// A number is used only once. It is the key for directories, logs and checkpoints, also for those
// of an attempt that the journal has lost.
class NumberOnce : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "number-never-given-twice"; }
  void accepted(const core::Event& event, const core::Ledger&) override {
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr ||
        !world_.watch.book().once_placed.contains({placed->job, placed->attempt}))
      return;
    broken(fmt::format("{} was placed once before",
                       describe(agent::RunKey{placed->job, placed->attempt})));
  }
};

class RanksDense : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "ranks-dense"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr) return;
    const JobPlan& plan = world_.scenario.plan(before.jobs.at(placed->job).spec.name());
    std::uint32_t next = 0;
    std::set<NodeName> nodes;
    for (const core::PlacedNode& part : placed->nodes) {
      const std::set<std::uint32_t> devices(part.devices.begin(), part.devices.end());
      if (part.rank_count > 0 && part.first_rank.value != next)
        return broken(fmt::format("{}: ranks of {} begin at {}, not at {}", placed->job.str(),
                                  part.node.str(), part.first_rank.value, next));
      if (!nodes.insert(part.node).second)
        return broken(
            fmt::format("{}: node {} is there twice", placed->job.str(), part.node.str()));
      if (devices.size() != plan.devices ||
          (!devices.empty() && *devices.rbegin() >= world_.scenario.devices))
        return broken(fmt::format("{}: wrong devices on {}", placed->job.str(), part.node.str()));
      next += part.rank_count;
    }
    const std::uint32_t world_size = plan.once ? 1 : plan.nodes * plan.devices;
    if (next != world_size || nodes.size() != plan.nodes)
      broken(fmt::format("{}: {} ranks on {} nodes, asked for {} on {}", placed->job.str(), next,
                         nodes.size(), world_size, plan.nodes));
  }
};

// A running rank is disturbed only by what the controller has durably ordered. The death of agents
// and controllers orders nothing.
class StopIsExplicit : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "stop-is-explicit"; }
  void accepted(const core::Event& event, const core::Ledger&) override {
    if (const auto* end = std::get_if<core::JobEnded>(&event.body)) ended_.insert(end->job);
  }
  void stopping(const Machine& machine, const agent::RunKey& run) override {
    // Of a job that has ended, also what the lost end of the journal had placed.
    if (!was_broken(run) && !ended_.contains(run.first))
      broken(
          fmt::format("{} stops {}, which nobody has broken", machine.name().str(), describe(run)));
  }
  void sweeping(const Machine& machine, const agent::RunKey& run) override {
    if (was_broken(run)) return;
    // Every rank has ended. What the worker still sweeps may also be swept by an agent whose state
    // directory was wiped.
    const auto truth = world_.watch.book().attempts.find(run);
    if (truth != world_.watch.book().attempts.end() && truth->second.first_exec &&
        truth->second.deaths.size() == truth->second.execd.size())
      return;
    const auto of_run = machine.of_run(run);
    // A worker that has no claim yet has no rank, and never gets one after the agent has taken the
    // claim.
    const bool supervised = std::ranges::any_of(of_run, [&](std::uint64_t pid) {
      const Process& process = machine.processes().at(pid);
      return process.kind == Process::Kind::Worker && process.claimed;
    });
    if (supervised)
      broken(
          fmt::format("{} sweeps {} under its living worker", machine.name().str(), describe(run)));
  }

 private:
  // An agent still carries out what it was ordered before the journal lost its end.
  [[nodiscard]] bool was_broken(const agent::RunKey& run) const {
    return world_.watch.book().is_broken(run) || world_.watch.book().once_broken.contains(run);
  }

  std::set<JobId> ended_;
};

// The controller's half of the same promise: an attempt is broken only because of something that
// truly happened.
class BrokenForACause : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "broken-for-a-cause"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* broke = std::get_if<core::AttemptBroke>(&event.body);
    if (broke == nullptr) return;
    const core::JobRecord& job = before.jobs.at(broke->job);
    const Book& book = world_.watch.book();
    const JobPlan& plan = world_.scenario.plan(job.spec.name());
    if (job.cancel_requested || job.attempts_lost > 0) return;
    if (const auto node = before.nodes.find(broke->drained);
        node != before.nodes.end() && node->second.drain && node->second.drain->deadline &&
        event.at >= *node->second.drain->deadline)
      return;
    if (job.phase == core::JobPhase::Completing && !plan.success_shown) return;
    const auto truth = book.attempts.find({broke->job, broke->attempt});
    if (truth != book.attempts.end() && truth->second.harmed) return;
    if (truth != book.attempts.end()) {
      for (const auto& [rank, death] : truth->second.deaths) {
        if (death.cause != DeathCause::Ended) return;
      }
    }
    const core::AttemptRecord& attempt = *job.current();
    for (const core::NodePart& part : attempt.parts) {
      if (part.idle()) continue;
      const NodeName& node = part.placed.node;
      // it never started there
      if (truth == book.attempts.end() || !truth->second.execd_on.contains(node)) return;
      if (world_.machine(node).boot() != part.placed.boot_id || !world_.machine(node).on() ||
          before.nodes.at(node).dead)
        return;
      const auto struck = book.struck.find(node);
      const auto durable = book.durable.find(broke->job);
      if (struck != book.struck.end() && durable != book.durable.end() &&
          struck->second >= durable->second.attempts.at(broke->attempt).placed_at)
        return;
      // It started very late: the report may miss the start's time-out by less than the time that
      // counts as silence.
      if (!part.started && world_.timeline.now() - truth->second.execd_on.at(node) <
                               world_.controller.limits().silent_after.count())
        return;
      const auto ack = book.last_ack.find(node);
      const Time silent = world_.timeline.now() - (ack == book.last_ack.end() ? 0 : ack->second);
      if (silent >= plan.orphan_grace) return;
    }
    broken(
        fmt::format("attempt {} of {} was broken ({}), but no rank has ended badly, no node was "
                    "struck, no grace is over",
                    broke->attempt.value, broke->job.str(), broke->cause));
  }
};

class OrdersMonotone : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "orders-never-older"; }
  void state_replaced(const Machine& machine) override { taken_.erase(machine.name()); }
  void orders_taken(const Machine& machine, const v1::Orders& orders,
                    std::uint64_t order) override {
    const Taken taken{
        .generation = orders.lineage().generation(), .epoch = orders.epoch(), .order = order};
    Taken& newest = taken_[machine.name()];
    if (taken < newest)
      broken(fmt::format("{} took orders older than those it had", machine.name().str()));
    newest = taken;
  }

 private:
  struct Taken {
    std::uint64_t generation = 0, epoch = 0, order = 0;
    auto operator<=>(const Taken&) const = default;
  };
  std::map<NodeName, Taken> taken_;
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> fence_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<StartOnce>(world));
  all.push_back(std::make_unique<DeviceExclusive>(world));
  all.push_back(std::make_unique<PortExclusive>(world));
  all.push_back(std::make_unique<NoStepAfterNext>(world));
  all.push_back(std::make_unique<NoCheckpointAfterNext>(world));
  all.push_back(std::make_unique<OneCurrentAttempt>(world));
  all.push_back(std::make_unique<NumberOnce>(world));
  all.push_back(std::make_unique<RanksDense>(world));
  all.push_back(std::make_unique<StopIsExplicit>(world));
  all.push_back(std::make_unique<BrokenForACause>(world));
  all.push_back(std::make_unique<OrdersMonotone>(world));
  return all;
}

}  // namespace muster::sim
