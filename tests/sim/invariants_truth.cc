// What the ledger says is what truly happened, and everything comes to an end.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/invariant.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

class ExitsAreTrue : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "exits-are-true"; }
  void accepted(const core::Event& event, const core::Ledger&) override {
    const auto* exited = std::get_if<core::RankExited>(&event.body);
    if (exited == nullptr) return;
    const Book& book = world_.watch.book();
    const auto truth = book.attempts.find({exited->job, exited->attempt});
    const auto what = fmt::format("rank {} of {}.{}", exited->rank.value, exited->job.str(), exited->attempt.value);
    const bool execd = truth != book.attempts.end() && truth->second.execd.contains(exited->rank.value);
    const bool dead = execd && truth->second.deaths.contains(exited->rank.value);
    if (execd && !dead) return broken(fmt::format("{} is filed as ended and lives", what));
    if (exited->lost) return;
    if (!dead) return broken(fmt::format("{} is filed with a status and was never exec'd", what));
    const Death& death = truth->second.deaths.at(exited->rank.value);
    if (death.code != exited->code || death.signal != exited->signal) {
      broken(fmt::format("{} ended with code {} signal {}, filed is code {} signal {}", what, death.code, death.signal, exited->code, exited->signal));
    }
  }
};

class SweptIsTrue : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "swept-is-true"; }
  void fact_sent(const Machine& machine, const v1::Fact& fact) override {
    if (fact.has_swept()) check(machine, {JobId(fact.job_id()), AttemptNo(fact.attempt())});
  }
  void accepted(const core::Event& event, const core::Ledger&) override {
    if (const auto* swept = std::get_if<core::NodeSwept>(&event.body)) check(world_.machine(swept->node), {swept->job, swept->attempt});
  }
  void exec(const Machine& machine, const Process& process) override {
    const std::string key = natural_key(core::NodeSwept{.job = process.run.first, .attempt = process.run.second, .node = machine.name()});
    if (world_.watch.book().facts.contains(key))
      broken(fmt::format("{} of {} was exec'd on {}, which is filed as swept", describe(process), describe(process.run), machine.name().str()));
  }

 private:
  void check(const Machine& machine, const agent::RunKey& run) {
    for (const std::uint64_t pid : machine.of_run(run)) {
      const Process& process = machine.processes().at(pid);
      if (process.kind == Process::Kind::Worker) continue;  // its last word is written by a worker that still lives
      return broken(fmt::format("{} says that {} is swept, and {} lives", machine.name().str(), describe(run), describe(process)));
    }
  }
};

class CheckpointsAreTrue : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "checkpoints-are-whole"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    if (const auto* checkpoint = std::get_if<core::CheckpointCompleted>(&event.body)) {
      if (!whole({checkpoint->job, checkpoint->attempt}, checkpoint->step)) {
        broken(fmt::format("step {} of {}.{} was accepted and is not whole", checkpoint->step, checkpoint->job.str(), checkpoint->attempt.value));
      }
    }
    if (const auto* aside = std::get_if<core::CheckpointSetAside>(&event.body)) check_set_aside(*aside, before.jobs.at(aside->job));
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr) return;
    const core::JobRecord& job = before.jobs.at(placed->job);
    std::int64_t newest = -1;
    for (const core::CheckpointRecord& known : job.checkpoints) {
      if (!known.set_aside) newest = std::max(newest, known.step);
    }
    if (!job.spec.resume().enabled()) newest = -1;
    const std::int64_t chosen = placed->resume ? placed->resume->step : -1;
    if (chosen != newest) return broken(fmt::format("{} resumes at {}, the newest checkpoint that was accepted is {}", placed->job.str(), chosen, newest));
    if (placed->resume && !whole({placed->job, placed->resume->attempt}, chosen))
      broken(fmt::format("{} resumes at {}, which is not whole", placed->job.str(), chosen));
  }

 private:
  // Only for what two attempts truly did that went on from it: ranks of theirs that failed by themselves. And never the last one.
  void check_set_aside(const core::CheckpointSetAside& aside, const core::JobRecord& job) {
    ++world_.coverage.seen["checkpoint set aside"];
    const auto counts = std::ranges::count_if(job.checkpoints, [](const core::CheckpointRecord& known) { return !known.set_aside; });
    if (counts < 2) return broken(fmt::format("{} has {} checkpoints that count, and one is set aside", aside.job.str(), counts));
    for (const core::AttemptRecord* attempt : {job.current(), job.before(*job.current())}) {
      const AttemptNo number = attempt == nullptr ? AttemptNo() : attempt->number;
      if (attempt == nullptr || !attempt->resume || attempt->resume->attempt != aside.attempt || attempt->resume->step != aside.step)
        return broken(fmt::format("step {} of {} is set aside, but attempt {} did not go on from it", aside.step, aside.job.str(), number.value));
      const auto truth = world_.watch.book().attempts.find({aside.job, number});
      const bool failed = truth != world_.watch.book().attempts.end() && std::ranges::any_of(truth->second.deaths, [](const auto& death) {
                            return death.second.cause == DeathCause::Failed || death.second.cause == DeathCause::PeerLost;
                          });
      if (!failed) return broken(fmt::format("step {} of {} is set aside, but no rank of attempt {} failed", aside.step, aside.job.str(), number.value));
    }
  }
  [[nodiscard]] bool whole(const agent::RunKey& run, std::int64_t step) const {
    const auto& saved = world_.training.saved(run);
    const auto found = saved.find(step);
    return found != saved.end() && found->second.whole();
  }
};

class OutcomesAreTrue : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "outcomes-are-true"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* ended = std::get_if<core::JobEnded>(&event.body);
    if (ended == nullptr) return;
    const core::JobRecord& job = before.jobs.at(ended->job);
    const JobPlan& plan = world_.scenario.plan(job.spec.name());
    const Book& book = world_.watch.book();
    if (ended->outcome == core::Outcome::Cancelled && !book.cancel_asked.contains(ended->job) && !behind_a_lost_one(job, before))
      return broken(fmt::format("{} was cancelled and nobody asked", ended->job.str()));
    if (ended->outcome != core::Outcome::Succeeded) return;
    const auto truth = book.attempts.find({ended->job, job.current()->number});
    const std::uint32_t world_size = plan.once ? 1 : plan.nodes * plan.devices;
    const bool well = truth != book.attempts.end() && truth->second.deaths.size() == world_size &&
                      std::ranges::all_of(truth->second.deaths, [](const auto& death) { return death.second.cause == DeathCause::Ended; });
    if (!well) return broken(fmt::format("{} succeeded, but not all of its ranks ended well", ended->job.str()));
    if (job.spec.success().has_regex() && !plan.success_shown) broken(fmt::format("{} succeeded without what success.regex asks for", ended->job.str()));
  }

 private:
  // It waits for one that has ended, in another way than well.
  static bool behind_a_lost_one(const core::JobRecord& job, const core::Ledger& before) {
    return job.phase == core::JobPhase::Queued && std::ranges::any_of(job.spec.schedule().after(), [&](const std::string& id) {
             const auto other = before.jobs.find(JobId(id));
             return other != before.jobs.end() && core::is_final(other->second.phase) && other->second.phase != core::JobPhase::Succeeded;
           });
  }
};

// No rank of a job runs before the jobs of its schedule.after have truly done their work, and their success is durable.
class BehindPredecessors : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "behind-its-predecessors"; }
  void exec(const Machine& machine, const Process& process) override {
    const Book& book = world_.watch.book();
    const auto submission = book.submissions.find(process.run.first);
    if (submission == book.submissions.end()) return;
    for (const JobId& id : submission->second.after) {
      ++world_.coverage.seen["rank exec'd behind a predecessor"];
      if (book.once_succeeded.contains(id) && ended_well(id)) continue;
      return broken(fmt::format("{} of {} was exec'd on {}, and job {}, which it waits for, has not succeeded", describe(process), describe(process.run),
                                machine.name().str(), id.str()));
    }
  }

 private:
  [[nodiscard]] bool ended_well(const JobId& id) const {
    const Book& book = world_.watch.book();
    const JobPlan& plan = world_.scenario.plan(book.submissions.at(id).name);
    const std::uint32_t world_size = plan.once ? 1 : plan.nodes * plan.devices;
    for (auto at = book.attempts.lower_bound({id, AttemptNo(0)}); at != book.attempts.end() && at->first.first == id; ++at) {
      const auto& deaths = at->second.deaths;
      if (deaths.size() == world_size && std::ranges::all_of(deaths, [](const auto& death) { return death.second.cause == DeathCause::Ended; })) return true;
    }
    return false;
  }
};

// Once the storm is over everything ends, and nothing is left behind.
class EverythingEnds : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "everything-ends"; }
  void finish() override {
    const Book& book = world_.watch.book();
    for (const auto& [request, id] : book.replied) {
      const auto job = book.durable.find(id);
      if (job != book.durable.end() && job->second.outcome) continue;
      const auto record = world_.controller.ledger().jobs.find(id);
      if (record == world_.controller.ledger().jobs.end()) return broken(fmt::format("job {} has not ended: it is unknown", id.str()));
      return broken(fmt::format("job {} has not ended: it is {}; {}", id.str(), core::to_string(record->second.phase), world_.controller.why(record->second)));
    }
    for (const auto& machine : world_.machines) {
      for (const auto& [pid, process] : machine->processes()) {
        const auto job = book.durable.find(process.run.first);
        return broken(fmt::format("{} of {} still lives on {}, its job {}", describe(process), describe(process.run), machine->name().str(),
                                  job != book.durable.end() && job->second.outcome ? "has ended" : "has not ended"));
      }
    }
  }
};

// And nothing of it is waited for: every job may be archived, every run directory forgotten.
class EverythingCloses : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "everything-closes"; }
  void finish() override {
    if (const std::optional<std::string> open = world_.left_open()) broken(fmt::format("{} is never closed", *open));
  }
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> truth_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<ExitsAreTrue>(world));
  all.push_back(std::make_unique<SweptIsTrue>(world));
  all.push_back(std::make_unique<CheckpointsAreTrue>(world));
  all.push_back(std::make_unique<OutcomesAreTrue>(world));
  all.push_back(std::make_unique<BehindPredecessors>(world));
  all.push_back(std::make_unique<EverythingEnds>(world));
  all.push_back(std::make_unique<EverythingCloses>(world));
  return all;
}

}  // namespace muster::sim
