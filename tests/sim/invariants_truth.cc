// What the ledger records is what truly happened, and everything comes to an end.
#include <fmt/format.h>

#include <algorithm>

#include "controller/core/model/spec_view.h"
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
    const auto what = fmt::format("rank {} of {}.{}", exited->rank.value, exited->job.str(),
                                  exited->attempt.value);
    const bool execd =
        truth != book.attempts.end() && truth->second.execd.contains(exited->rank.value);
    const bool dead = execd && truth->second.deaths.contains(exited->rank.value);
    if (execd && !dead) return broken(fmt::format("{} is filed as ended and lives", what));
    if (exited->lost) return;
    if (!dead) return broken(fmt::format("{} is filed with a status and was never exec'd", what));
    const Death& death = truth->second.deaths.at(exited->rank.value);
    if (death.code != exited->code || death.signal != exited->signal) {
      broken(fmt::format("{} ended with code {} signal {}, filed is code {} signal {}", what,
                         death.code, death.signal, exited->code, exited->signal));
    }
    const bool stopped = death.cause == DeathCause::Stopped || death.cause == DeathCause::Orphaned;
    if (stopped && !exited->stop_requested)
      broken(fmt::format("{} was stopped, filed is that it ended by itself", what));
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
    if (const auto* swept = std::get_if<core::NodeSwept>(&event.body))
      check(world_.machine(swept->node), {swept->job, swept->attempt});
  }
  void exec(const Machine& machine, const Process& process) override {
    const std::string key = natural_key(core::NodeSwept{
        .job = process.run.first, .attempt = process.run.second, .node = machine.name()});
    if (world_.watch.book().facts.contains(key))
      broken(fmt::format("{} of {} was exec'd on {}, which is filed as swept", describe(process),
                         describe(process.run), machine.name().str()));
  }

 private:
  void check(const Machine& machine, const agent::RunKey& run) {
    for (const std::uint64_t pid : machine.of_run(run)) {
      const Process& process = machine.processes().at(pid);
      // A worker that still lives writes the last record of its run.
      if (process.kind == Process::Kind::Worker) continue;
      return broken(fmt::format("{} says that {} is swept, and {} lives", machine.name().str(),
                                describe(run), describe(process)));
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
        broken(fmt::format("step {} of {}.{} was accepted and is not whole", checkpoint->step,
                           checkpoint->job.str(), checkpoint->attempt.value));
      }
    }
    if (const auto* quarantined = std::get_if<core::CheckpointQuarantined>(&event.body))
      check_quarantined(*quarantined, before.jobs.at(quarantined->job));
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr) return;
    const core::JobRecord& job = before.jobs.at(placed->job);
    std::int64_t newest = -1;
    for (const core::CheckpointRecord& known : job.checkpoints) {
      if (!known.quarantined) newest = std::max(newest, known.step);
    }
    if (!job.spec.resume().enabled()) newest = -1;
    const bool own = placed->resume && !placed->resume->from_start;  // else: starts-where-it-should
    const std::int64_t chosen = own ? placed->resume->step : -1;
    if (chosen != newest)
      return broken(fmt::format("{} resumes at {}, the newest checkpoint that was accepted is {}",
                                placed->job.str(), chosen, newest));
    if (own && !whole({placed->job, placed->resume->attempt}, chosen))
      broken(fmt::format("{} resumes at {}, which is not whole", placed->job.str(), chosen));
  }

 private:
  // A checkpoint is quarantined only if two attempts truly resumed from it, and ranks of theirs
  // failed by themselves. The last checkpoint is never quarantined.
  void check_quarantined(const core::CheckpointQuarantined& quarantined,
                         const core::JobRecord& job) {
    ++world_.coverage.seen["checkpoint quarantined"];
    const auto counts = std::ranges::count_if(
        job.checkpoints, [](const core::CheckpointRecord& known) { return !known.quarantined; });
    const bool older = job.start && core::goes_on_from_start(job.spec);
    if (counts < (older ? 1 : 2))
      return broken(fmt::format("{} has {} checkpoints that count, and one is quarantined",
                                quarantined.job.str(), counts));
    for (const core::AttemptRecord* attempt : {job.current(), job.before(*job.current())}) {
      const AttemptNo number = attempt == nullptr ? AttemptNo() : attempt->number;
      if (attempt == nullptr || !attempt->resume || attempt->resume->from_start ||
          attempt->resume->attempt != quarantined.attempt ||
          attempt->resume->step != quarantined.step)
        return broken(
            fmt::format("step {} of {} is quarantined, but attempt {} did not go on from it",
                        quarantined.step, quarantined.job.str(), number.value));
      const auto truth = world_.watch.book().attempts.find({quarantined.job, number});
      const bool failed = truth != world_.watch.book().attempts.end() &&
                          std::ranges::any_of(truth->second.deaths, [](const auto& death) {
                            return death.second.cause == DeathCause::Failed ||
                                   death.second.cause == DeathCause::PeerLost;
                          });
      if (!failed)
        return broken(fmt::format("step {} of {} is quarantined, but no rank of attempt {} failed",
                                  quarantined.step, quarantined.job.str(), number.value));
    }
  }
  [[nodiscard]] bool whole(const agent::RunKey& run, std::int64_t step) const {
    const auto& saved = world_.training.saved(run);
    const auto found = saved.find(step);
    return found != saved.end() && found->second.whole();
  }
};

// What the last attempt saved is known before the next one is placed, so nothing of it is trained
// again. This holds where every node of the attempt has reported its sweep, and not in histories
// that lose the journal's end: a checkpoint may be in that end.
class GoesOnFromNewest : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "goes-on-from-the-newest"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    const auto* placed = std::get_if<core::AttemptPlaced>(&event.body);
    if (placed == nullptr || world_.scenario.loses_journal_ends) return;
    const core::JobRecord& job = before.jobs.at(placed->job);
    const core::AttemptRecord* last = job.current();
    if (last == nullptr || job.spec.checkpoint().layout() == "none") return;
    if (!std::ranges::all_of(last->parts, [&](const core::NodePart& part) {
          return reported(part, job, *last, before);
        }))
      return;
    const auto& saved = world_.training.saved({job.id, last->number});
    const auto newest = std::ranges::find_if(saved.rbegin(), saved.rend(),
                                             [](const auto& one) { return one.second.whole(); });
    if (newest == saved.rend()) return;
    const bool known =
        std::ranges::any_of(job.checkpoints, [&](const core::CheckpointRecord& checkpoint) {
          return checkpoint.attempt == last->number && checkpoint.step == newest->first;
        });
    if (!known)
      broken(fmt::format("{} is placed, and step {} of attempt {}, which is whole, is not known",
                         job.id.str(), newest->first, last->number.value));
  }

 private:
  // Not by a machine that took the name of the node: it has none of the files.
  [[nodiscard]] bool reported(const core::NodePart& part, const core::JobRecord& job,
                              const core::AttemptRecord& attempt,
                              const core::Ledger& ledger) const {
    if (part.idle()) return true;
    const auto node = ledger.nodes.find(part.placed.node);
    if (node == ledger.nodes.end() || node->second.boot_id != part.placed.boot_id) return false;
    const Book& book = world_.watch.book();
    const auto struck = book.struck.find(part.placed.node);
    const auto durable = book.durable.find(job.id);
    return part.swept && durable != book.durable.end() &&
           (struck == book.struck.end() ||
            struck->second < durable->second.attempts.at(attempt.number).placed_at);
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
    if (ended->outcome == core::Outcome::Cancelled && !book.cancel_asked.contains(ended->job) &&
        !behind_a_lost_one(job, before) && !without_start(job, before))
      return broken(fmt::format("{} was cancelled and nobody asked", ended->job.str()));
    if (ended->outcome != core::Outcome::Succeeded) return;
    const auto truth = book.attempts.find({ended->job, job.current()->number});
    const std::uint32_t world_size = plan.once ? 1 : plan.nodes * plan.devices;
    const bool well = truth != book.attempts.end() && truth->second.deaths.size() == world_size &&
                      std::ranges::all_of(truth->second.deaths, [](const auto& death) {
                        return death.second.cause == DeathCause::Ended;
                      });
    if (!well)
      return broken(
          fmt::format("{} succeeded, but not all of its ranks ended well", ended->job.str()));
    if (job.spec.success().has_regex() && !plan.success_shown)
      broken(fmt::format("{} succeeded without what success.regex asks for", ended->job.str()));
  }

 private:
  // The job was to start from what a stage saved; that stage has ended with success and saved
  // nothing.
  static bool without_start(const core::JobRecord& job, const core::Ledger& before) {
    if (job.phase != core::JobPhase::Queued ||
        job.spec.start().as() == v1::START_AS_RESUME_OR_SCRATCH)
      return false;
    return std::ranges::any_of(job.resolved.stage().dirs(), [&](const v1::StageDir& dir) {
      const auto stage = before.jobs.find(JobId(dir.job()));
      return job.spec.start().from() == "stage:" + dir.stage() && stage != before.jobs.end() &&
             stage->second.phase == core::JobPhase::Succeeded &&
             std::ranges::all_of(
                 stage->second.checkpoints,
                 [](const core::CheckpointRecord& known) { return known.quarantined; });
    });
  }
  // The job waits for a job that has ended without success.
  static bool behind_a_lost_one(const core::JobRecord& job, const core::Ledger& before) {
    return job.phase == core::JobPhase::Queued &&
           std::ranges::any_of(job.resolved.after(), [&](const std::string& id) {
             const auto other = before.jobs.find(JobId(id));
             return other != before.jobs.end() && core::is_final(other->second.phase) &&
                    other->second.phase != core::JobPhase::Succeeded;
           });
  }
};

// After every crash, a chain is there as a whole, or not at all.
class AllOrNoneOfAChain : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "all-or-none-of-a-chain"; }
  void replayed(const core::Ledger& ledger) override {
    for (const auto& [id, jobs] : ledger.indexes.chains) {
      if (world_.watch.book().chains_cut.contains(id)) continue;
      const auto known = world_.watch.book().chains.find(id);
      if (known != world_.watch.book().chains.end()) check(id, jobs.size(), known->second.count);
    }
    for (const auto& [id, chain] : world_.watch.book().chains) {
      if (!ledger.indexes.chains.contains(id))
        return broken(fmt::format("chain {} was durable and is gone", id.str()));
    }
  }
  void replied(const RequestId&, const JobId& job) override {
    const auto chain = world_.watch.book().chains.find(job);
    if (chain != world_.watch.book().chains.end() && !world_.watch.book().chains_cut.contains(job))
      check(job, chain->second.jobs.size(), chain->second.count);
  }

 private:
  void check(const JobId& chain, std::size_t there, std::uint32_t count) const {
    if (there != count)
      broken(fmt::format("of the {} jobs of chain {} {} are there", count, chain.str(), there));
  }
};

// A job that starts from a stage begins with the newest whole checkpoint of that stage, as long as
// it has none of its own. It does not begin before the stage has succeeded. The check uses what
// ranks truly saved, and where.
class StartsWhereItShould : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "starts-where-it-should"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    if (const auto* ended = std::get_if<core::JobEnded>(&event.body)) {
      if (ended->outcome == core::Outcome::Succeeded)
        saved_[ended->job] = newest_of(before.jobs.at(ended->job));
      const bool nothing_saved = ended->verdict && ended->verdict->signature == "no start";
      if (nothing_saved) ++world_.coverage.seen["cancelled: a stage saved nothing to start from"];
    }
    if (const auto* placed = std::get_if<core::AttemptPlaced>(&event.body))
      check(*placed, before.jobs.at(placed->job));
  }

 private:
  using Saved = std::optional<std::pair<agent::RunKey, std::int64_t>>;  // by whom, and which step

  // The newest accepted checkpoint of the job, if it is truly whole. Nobody can start from a
  // checkpoint that nobody has reported by then.
  Saved newest_of(const core::JobRecord& job) const {
    Saved newest;
    for (const core::CheckpointRecord& known : job.checkpoints) {
      if (known.quarantined) continue;
      if (!newest ||
          std::pair(known.step, known.attempt) > std::pair(newest->second, newest->first.second))
        newest = {{{job.id, known.attempt}, known.step}};
    }
    return newest;
  }

  void check(const core::AttemptPlaced& placed, const core::JobRecord& job) {
    const JobPlan& plan = world_.scenario.plan(job.spec.name());
    const bool own = std::ranges::any_of(
        job.checkpoints, [](const core::CheckpointRecord& known) { return !known.quarantined; });
    if (plan.starts_from.empty()) {
      if (placed.resume && placed.resume->from_start)
        broken(
            fmt::format("{} begins with a checkpoint, and starts from nothing", placed.job.str()));
      return;
    }
    if (own) {
      if (placed.resume && placed.resume->from_start)
        broken(fmt::format("{} begins anew, and has a checkpoint of its own", placed.job.str()));
      return;
    }
    const JobId stage = stage_of(job, plan);
    const auto saved = saved_.find(stage);
    if (saved == saved_.end())
      return broken(fmt::format("{} is placed, and {}, which it starts from, has not succeeded",
                                placed.job.str(), stage.str()));
    if (!saved->second) {
      if (plan.as != v1::START_AS_RESUME_OR_SCRATCH)
        return broken(fmt::format("{} is placed, and {} has saved nothing to start from",
                                  placed.job.str(), stage.str()));
      if (placed.resume)
        return broken(fmt::format("{} begins with a checkpoint of {}, which has none",
                                  placed.job.str(), stage.str()));
      ++world_.coverage.seen["started from a stage that saved nothing"];
      return;
    }
    const auto& [run, step] = *saved->second;
    if (!placed.resume || !placed.resume->from_start ||
        placed.resume->path != Training::path_of(run, step) || placed.resume->step != step) {
      return broken(fmt::format("{} begins at {}, and the newest of {} is {}", placed.job.str(),
                                placed.resume ? placed.resume->path : "the beginning", stage.str(),
                                Training::path_of(run, step)));
    }
    const auto& truly = world_.training.saved(run);
    if (!truly.contains(step) || !truly.at(step).whole())
      return broken(fmt::format("{} begins with step {} of {}, which is not whole",
                                placed.job.str(), step, stage.str()));
    ++world_.coverage.seen[fmt::format("started from a stage's checkpoint: {}",
                                       plan.as == v1::START_AS_WEIGHTS ? "weights" : "resume")];
    if (!job.attempts.empty()) ++world_.coverage.seen["started from a stage's checkpoint again"];
  }

  static JobId stage_of(const core::JobRecord& job, const JobPlan& plan) {
    for (const v1::StageDir& dir : job.resolved.stage().dirs()) {
      if (plan.chain + "." + dir.stage() == plan.starts_from) return JobId(dir.job());
    }
    return {};
  }

  std::map<JobId, Saved> saved_;
};

// No rank of a job runs before the jobs of its schedule.after have truly done their work, and their
// success is durable.
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
      return broken(fmt::format(
          "{} of {} was exec'd on {}, and job {}, which it waits for, has not succeeded",
          describe(process), describe(process.run), machine.name().str(), id.str()));
    }
  }

 private:
  [[nodiscard]] bool ended_well(const JobId& id) const {
    const Book& book = world_.watch.book();
    const JobPlan& plan = world_.scenario.plan(book.submissions.at(id).name);
    const std::uint32_t world_size = plan.once ? 1 : plan.nodes * plan.devices;
    for (auto at = book.attempts.lower_bound({id, AttemptNo(0)});
         at != book.attempts.end() && at->first.first == id; ++at) {
      const auto& deaths = at->second.deaths;
      if (deaths.size() == world_size && std::ranges::all_of(deaths, [](const auto& death) {
            return death.second.cause == DeathCause::Ended;
          }))
        return true;
    }
    return false;
  }
};

// Once the storm is over, everything ends, and nothing is left behind.
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
      if (record == world_.controller.ledger().jobs.end())
        return broken(fmt::format("job {} has not ended: it is unknown", id.str()));
      return broken(fmt::format("job {} has not ended: it is {}; {}", id.str(),
                                core::to_string(record->second.phase),
                                world_.controller.why(record->second)));
    }
    for (const auto& [request, id] : book.replied) {
      const auto chain = book.chains.find(id);
      if (chain == book.chains.end()) continue;
      for (const JobId& stage : chain->second.jobs) {
        if (!book.durable.at(stage).outcome)
          return broken(fmt::format("stage {} has not ended", stage.str()));
      }
    }
    for (const auto& machine : world_.machines) {
      for (const auto& [pid, process] : machine->processes()) {
        const auto job = book.durable.find(process.run.first);
        return broken(fmt::format(
            "{} of {} still lives on {}, its job {}", describe(process), describe(process.run),
            machine->name().str(),
            job != book.durable.end() && job->second.outcome ? "has ended" : "has not ended"));
      }
    }
  }
};

// Nothing waits for an ended job: every job may be archived, and every run directory forgotten.
class EverythingCloses : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "everything-closes"; }
  void finish() override {
    if (const std::optional<std::string> open = world_.left_open())
      broken(fmt::format("{} is never closed", *open));
  }
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> truth_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<ExitsAreTrue>(world));
  all.push_back(std::make_unique<SweptIsTrue>(world));
  all.push_back(std::make_unique<CheckpointsAreTrue>(world));
  all.push_back(std::make_unique<GoesOnFromNewest>(world));
  all.push_back(std::make_unique<OutcomesAreTrue>(world));
  all.push_back(std::make_unique<AllOrNoneOfAChain>(world));
  all.push_back(std::make_unique<StartsWhereItShould>(world));
  all.push_back(std::make_unique<BehindPredecessors>(world));
  all.push_back(std::make_unique<EverythingEnds>(world));
  all.push_back(std::make_unique<EverythingCloses>(world));
  return all;
}

}  // namespace muster::sim
