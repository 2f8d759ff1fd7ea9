// Jobs that wait for others: what each end means for the jobs that wait, what is left of a cut
// journal, and what a long chain costs.
#include "controller/core/chains/predecessors.h"

#include <chrono>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

struct ChainWorld : SmallWorld {
  ChainWorld() { node("n0", 2); }

  static v1::JobSpec after(const std::string& name, const std::vector<std::string>& others) {
    v1::JobSpec what = spec(name, 1, 1);
    for (const std::string& id : others) what.mutable_schedule()->add_after(id);
    return what;
  }
  Decision put_behind(const std::string& id, const std::vector<std::string>& others,
                      const std::string& request = "") {
    return submit(id, after("job-" + id, others), request);
  }
  void succeed(const std::string& id) {
    started(id, 1, "n0");
    exited(id, 1, "n0", 0, 0);
    swept(id, 1, "n0");
  }
  void give_up(const std::string& id) {
    v1::Fact failed = fact(id, 1);
    failed.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
    failed.mutable_start_failed()->set_text("no such file");
    report("n0", std::move(failed));
    swept(id, 1, "n0");
  }
  std::vector<std::string> why(const std::string& id) const {
    return explain(ledger, presence, job(id), now, limits);
  }
  Ledger replayed(std::size_t rows) const {
    Ledger again;
    for (std::size_t row = 0; row < rows; ++row)
      apply(again, journal[row].first, journal[row].second);
    return again;
  }
};

TEST(Predecessors, AJobIsPlacedWhenAllOfThemHaveSucceeded) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {});
  world.put_behind("j3", {"j1", "j2"});
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
  world.succeed("j1");
  EXPECT_EQ(world.job("j3").waits_for, std::set{JobId("j2")});
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
  world.exited("j2", 1, "n0", 0, 0);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Completing);
  // its ranks have ended, and its success is not known yet
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
  world.swept("j2", 1, "n0");
  EXPECT_EQ(world.job("j3").phase, JobPhase::Launching);
  EXPECT_TRUE(world.ledger.indexes.dependents.empty());
  EXPECT_TRUE(world.ledger.indexes.unsettled.empty());
}

TEST(Predecessors, OneThatWaitsHoldsNobodyUpAndKeepsItsPlace) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {});
  world.put_behind("j4", {});
  EXPECT_EQ(world.job("j3").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j4").phase, JobPhase::Queued);
  world.succeed("j1");
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching) << "submitted before j4";
  EXPECT_EQ(world.job("j4").phase, JobPhase::Queued);
}

TEST(Predecessors, APlacementOfOneThatWaitsIsNotTaken) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  const PlaceResult placed =
      place(world.ledger, world.presence, world.job("j2"), world.now, world.limits);
  ASSERT_FALSE(placed.nodes.empty());
  const ProposePlacement early{.job = JobId("j2"),
                               .attempt = AttemptNo(1),
                               .nodes = placed.nodes,
                               .master_port = placed.master_port};
  EXPECT_TRUE(decide(world.ledger, world.presence, early, world.now, world.limits).events.empty());
}

TEST(Predecessors, AFailureEndsTheChainInOneDecision) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {"j2"});
  world.put_behind("j4", {"j1", "j3"});
  world.put_behind("j5", {});
  world.give_up("j1");
  ASSERT_EQ(world.job("j1").phase, JobPhase::Failed);
  for (const char* id : {"j2", "j3", "j4"}) {
    EXPECT_EQ(world.job(id).phase, JobPhase::Cancelled) << id;
    EXPECT_EQ(world.job(id).verdict->cls, FailureClass::Launch) << id;
    EXPECT_NE(world.job(id).verdict->reason.find("'job-j1' (j1)"), std::string::npos)
        << world.job(id).verdict->reason;
    EXPECT_NE(world.job(id).verdict->reason.find("no such file"), std::string::npos)
        << world.job(id).verdict->reason;
  }
  EXPECT_TRUE(world.job("j3").verdict->reason.starts_with(
      "job 'job-j2' (j2), which it waited for, was cancelled, because job 'job-j1' (j1) failed: "))
      << world.job("j3").verdict->reason;
  EXPECT_EQ(world.job("j5").phase, JobPhase::Launching);
  EXPECT_TRUE(world.ledger.indexes.queue.empty());
  EXPECT_TRUE(world.ledger.indexes.dependents.empty());
  std::size_t ends = 0;
  for (const auto& [index, event] : world.journal)
    ends += std::holds_alternative<JobEnded>(event.body) ? 1 : 0;
  EXPECT_EQ(ends, 4U) << "each job ends once";
}

TEST(Predecessors, ARestartOfOneIsNoEnd) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.started("j1", 1, "n0");
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  EXPECT_EQ(world.job("j1").attempts.size(), 2U);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Queued);
}

TEST(Predecessors, WhoCancelledIsNamedOnce) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {"j2"});
  world.put(CancelJob{.job = JobId("j2"), .reason = "wrong data", .by = "alice"});
  EXPECT_EQ(world.job("j2").verdict->reason, "cancelled by alice: wrong data");
  EXPECT_EQ(world.job("j3").verdict->reason,
            "job 'job-j2' (j2), which it waited for, was cancelled by alice: wrong data");
}

TEST(Predecessors, ACancelOfOneThatWaitsTakesThoseBehindItAlong) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {"j2"});
  world.put(CancelJob{.job = JobId("j2"), .reason = "wrong data"});
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.job("j3").verdict->reason,
            "job 'job-j2' (j2), which it waited for, was cancelled: wrong data");
  EXPECT_EQ(world.job("j3").verdict->cls, FailureClass::Operator);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_TRUE(world.ledger.indexes.dependents.empty());
}

TEST(Predecessors, WhatHasEndedAlreadyIsTakenOrRefused) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {});
  world.succeed("j1");
  world.give_up("j2");
  EXPECT_FALSE(world.put_behind("j3", {"j1"}).refusal);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Launching);
  const Decision failed = world.put_behind("j4", {"j1", "j2"});
  ASSERT_TRUE(failed.refusal);
  EXPECT_EQ(failed.refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_NE(failed.refusal->message.find("'job-j2' (j2), which failed: "), std::string::npos)
      << failed.refusal->message;
  const Decision unknown = world.put_behind("j5", {"nobody"});
  ASSERT_TRUE(unknown.refusal);
  EXPECT_EQ(unknown.refusal->code, ErrorCode::NotFound);
}

TEST(Predecessors, ARequestThatIsRepeatedIsTheSameJobWhateverBecameOfThem) {
  ChainWorld world;
  world.put_behind("j1", {});
  ASSERT_FALSE(world.put_behind("j2", {"j1"}, "r2").repeated);
  world.give_up("j1");
  const Decision again = world.put_behind("j3", {"j1"}, "r2");
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.job, JobId("j2"));
}

// Archived, and its tombstone dropped: no row of the predecessor is left, and the waiting job still
// waits for another one.
TEST(Predecessors, NothingIsLostWithTheRowsOfAPredecessor) {
  ChainWorld world;
  world.limits.archive_after = Duration::zero();
  world.limits.tombstone_keep = Duration::zero();
  world.put_behind("j1", {});
  world.put_behind("j2", {});
  world.put_behind("j3", {"j1", "j2"});
  world.succeed("j1");
  world.logs("j1", 1, "n0");
  ASSERT_FALSE(world.ledger.jobs.contains(JobId("j1")));
  ASSERT_FALSE(world.ledger.tombstones.contains(JobId("j1")));
  Ledger again;
  for (const auto& [index, event] : world.journal) {
    const bool of_j1 = std::visit(
        [](const auto& body) {
          if constexpr (requires { body.job; }) return body.job == JobId("j1");
          return false;
        },
        event.body);
    if (!of_j1) apply(again, index, event);
  }
  EXPECT_EQ(again.jobs.at(JobId("j3")).waits_for, std::set{JobId("j2")});
  EXPECT_TRUE(again.indexes.unsettled.empty());
  EXPECT_EQ(world.why("j3"),
            std::vector<std::string>{"waits for job 'job-j2' (j2), which is launching"});
  world.succeed("j2");
  EXPECT_EQ(world.job("j3").phase, JobPhase::Launching);
}

TEST(Predecessors, OneThatOnlyTheArchiveKnowsCountsByHowItEnded) {
  ChainWorld world;
  SubmitJob input{.job = JobId("j2"),
                  .spec = ChainWorld::after("late", {"j1"}),
                  .resolved = SmallWorld::resolved(ChainWorld::after("late", {"j1"})),
                  .spec_hash = "hash",
                  .archived = {{JobId("j1"), {"old", JobPhase::Failed}}}};
  const Decision refused = world.put(input);
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->code, ErrorCode::Unsatisfiable);
  input.archived[JobId("j1")].phase = JobPhase::Succeeded;
  EXPECT_FALSE(world.put(input).refusal);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  EXPECT_EQ(world.replayed(world.journal.size()).jobs.at(JobId("j2")).phase, JobPhase::Launching);
}

// An accepted loss may cut the batch of an end in two, anywhere.
TEST(Predecessors, WhatACutJournalLeavesOpenIsMadeUpFor) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {"j2"});
  world.give_up("j1");
  const auto& rows = world.journal;
  std::size_t end = 0;
  while (!std::holds_alternative<JobEnded>(rows[end].second.body)) ++end;
  for (std::size_t kept = end + 1; kept <= rows.size(); ++kept) {
    SCOPED_TRACE(kept);
    ChainWorld cut;
    cut.ledger = world.replayed(kept);
    cut.journal.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept));
    cut.settle();
    for (const char* id : {"j2", "j3"}) {
      EXPECT_EQ(cut.job(id).phase, JobPhase::Cancelled) << id;
      EXPECT_NE(cut.job(id).verdict->reason.find("no such file"), std::string::npos)
          << cut.job(id).verdict->reason;
    }
    EXPECT_TRUE(cut.ledger.indexes.unsettled.empty());
  }
}

// It existed when the job was submitted. No row is left of it, nor of what its end meant.
TEST(Predecessors, OneThatIsNotKnownAnyMoreIsNotTakenForASuccess) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  Ledger again;
  for (const auto& [index, event] : world.journal) {
    const auto* submitted = std::get_if<JobSubmitted>(&event.body);
    if (submitted != nullptr ? submitted->job == JobId("j2")
                             : std::holds_alternative<NodeRegistered>(event.body))
      apply(again, index, event);
  }
  world.ledger = again;
  world.settle();
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.job("j2").verdict->reason,
            "job 'j1', which it waited for, is not known any more: the journal has lost it");
}

TEST(Predecessors, IsNotArchivedWhileSomebodyHasNotHeardOfItsEnd) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.started("j1", 1, "n0");
  world.exited("j1", 1, "n0", 0, 0);
  world.swept("j1", 1, "n0");
  std::size_t end = 0;
  while (!std::holds_alternative<JobEnded>(world.journal[end].second.body)) ++end;
  const Ledger cut = world.replayed(end + 1);
  EXPECT_TRUE(
      decide(cut, world.presence, ProposeArchive{.job = JobId("j1")}, world.now, world.limits)
          .events.empty());
  EXPECT_FALSE(decide(world.ledger, world.presence, ProposeArchive{.job = JobId("j1")}, world.now,
                      world.limits)
                   .events.empty());
}

TEST(Predecessors, WhySaysHowFarTheyAre) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  world.put_behind("j3", {"j2"});
  EXPECT_EQ(world.why("j2"),
            std::vector<std::string>{"waits for job 'job-j1' (j1), which is launching"});
  EXPECT_EQ(world.why("j3"),
            std::vector<std::string>{"waits for job 'job-j2' (j2), which is queued behind others"});
  world.started("j1", 1, "n0");
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = *heard.heartbeat.add_readings();
  reading.set_job_id("j1");
  reading.set_attempt(1);
  reading.add_ranks()->set_step(30);
  reading.mutable_ranks(0)->set_total(100);
  world.see(heard);
  EXPECT_EQ(world.why("j2"), std::vector<std::string>{
                                 "waits for job 'job-j1' (j1), which is running, step 30 of 100"});
  v1::JobSpec many = SmallWorld::spec("many", 1, 1);
  for (int count = 0; count < 8; ++count) {
    world.put_behind(fmt::format("k{}", count), {"j1"});
    many.mutable_schedule()->add_after(fmt::format("k{}", count));
  }
  world.submit("m", many);
  const auto lines = world.why("m");
  ASSERT_EQ(lines.size(), kPredecessorsNamed + 1);
  EXPECT_EQ(lines.back(), "waits for 2 more jobs");
}

// A sentence does not repeat all sentences before it, and a long sentence of a predecessor is cut,
// between characters.
TEST(Predecessors, CausesAreBounded) {
  ChainWorld world;
  world.put_behind("j1", {});
  world.put_behind("j2", {"j1"});
  std::string reason = "xy";
  for (int count = 0; count < 600; ++count) reason += "é";
  world.put(CancelJob{.job = JobId("j1"), .reason = reason});
  world.swept("j1", 1, "n0");
  const std::string& verdict_reason = world.job("j2").verdict->reason;
  EXPECT_LT(verdict_reason.size(), 700U);
  EXPECT_TRUE(verdict_reason.ends_with("é...")) << verdict_reason;
}

// Each end checks only the jobs that wait for it, and waiting jobs are not checked at all: a chain
// of a thousand costs a thousand times as much as one job.
TEST(Predecessors, AThousandInAChainAreNotQuadratic) {
  const auto time_of = [](int jobs, bool fails) {
    ChainWorld world;
    world.put_behind("j00000", {});
    for (int job = 1; job < jobs; ++job)
      world.put_behind(fmt::format("j{:05}", job), {fmt::format("j{:05}", job - 1)});
    EXPECT_EQ(world.ledger.indexes.queue.size(), static_cast<std::size_t>(jobs - 1));
    EXPECT_TRUE(world.ledger.indexes.queue_lines.empty());
    const auto begun = std::chrono::steady_clock::now();
    if (fails) {
      world.give_up("j00000");
    } else {
      for (int job = 0; job < jobs; ++job) {
        world.succeed(fmt::format("j{:05}", job));
        world.logs(fmt::format("j{:05}", job), 1, "n0");
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    EXPECT_TRUE(world.ledger.indexes.queue.empty());
    EXPECT_TRUE(world.ledger.indexes.live.empty());
    EXPECT_EQ(world.job(fmt::format("j{:05}", jobs - 1)).phase,
              fails ? JobPhase::Cancelled : JobPhase::Succeeded);
    EXPECT_LT(world.job(fmt::format("j{:05}", jobs - 1)).verdict.value_or(Verdict{}).reason.size(),
              1'000U);
    return took.count();
  };
  // If it were quadratic, it would take a hundred times as long; the bound leaves room for a busy
  // machine.
  EXPECT_LT(time_of(2'000, false), 50 * time_of(200, false) + 1.0);
  EXPECT_LT(time_of(2'000, true), 50 * time_of(200, true) + 1.0);
}

}  // namespace
}  // namespace muster::core
