// The journal's end was lost, and the loss accepted: attempts that it named may run, and their
// numbers are used. Scenarios 34, 38 and 39 have the cases.
#include "controller/core/journal_end/lost_end.h"

#include <gmock/gmock.h>

#include "controller/core/recovery/next_attempt.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::PresentAttempt present(const std::string& job, std::uint32_t attempt, bool swept) {
  v1::PresentAttempt one;
  one.set_job_id(job);
  one.set_attempt(attempt);
  one.set_swept(swept);
  return one;
}

// One node with two devices, and a job with one rank running there.
struct Lossy : SmallWorld {
  Lossy() {
    accept({.events = {ControllerStarted{.epoch = Epoch(1), .cluster = ClusterId("c")}}});
    node("n0", 2);
    node("n1", 2);
    submit("j1", short_grace("train"));
    started("j1", 1, "n0");
  }
  static v1::JobSpec short_grace(const std::string& name) {
    v1::JobSpec what = spec(name, 1, 1);
    what.mutable_recovery()->mutable_orphan_grace()->set_seconds(60);
    return what;
  }
  void restart(std::uint64_t rows_lost) {
    presence = Presence{};
    presence.listening_since = now.boot;
    if (rows_lost > 0)
      accept({.events = {end_lost(ledger.lineage, {.rows = rows_lost}, "id", /*ticks=*/0)}});
    accept({.events = {ControllerStarted{.epoch = Epoch(ledger.epoch.value + 1),
                                         .cluster = ClusterId("c")}}});
    settle();
  }
};

TEST(LostEnd, BeginsANewLineage) {
  const JournalEndLost lost = end_lost({}, {.rows = 300}, "one", 5);
  EXPECT_EQ(lost.lineage, (Lineage{.generation = 1, .id = "one"}));
  EXPECT_EQ(lost.attempts_skipped, 300U) << "each lost row may have been an attempt";
  EXPECT_EQ(end_lost({}, {.rows = kAttemptsUnknown}, "one", 5).attempts_skipped,
            kAttemptsUnknown + 5)
      << "a known number of a million rows skips different numbers each time, too";
  // Losses that were lost themselves count: their lineages are known to agents.
  EXPECT_EQ(end_lost(lost.lineage, {.rows = 2, .generation = 4}, "two", 5).lineage,
            (Lineage{.generation = 5, .id = "two"}));
}

TEST(LostEnd, AnUnknownNumberOfRowsSkipsMoreThanAnyJobHas) {
  const auto skipped = [](const Lineage& before, std::uint64_t generation, std::uint64_t ticks) {
    return end_lost(before, {.rows = {}, .generation = generation}, "id", ticks).attempts_skipped;
  };
  for (const std::uint64_t now : {0, 1, 999'999, 1'800'000'000})
    EXPECT_EQ(skipped({}, 0, now), kAttemptsUnknown + now % kAttemptsUnknown);
  EXPECT_NE(skipped({}, 0, 1'800'000'000), skipped({}, 0, 1'800'000'001))
      << "the same copy, put back and accepted once more";
  // Two accepted losses are lost together.
  const std::uint64_t both = std::uint64_t{skipped({}, 0, 999'998)} + skipped({}, 0, 999'999);
  EXPECT_GT(skipped({}, 2, 0), both);
  // What an agent reports is believed up to a bound, and stays in the range of the numbers.
  EXPECT_LT(skipped({}, ~std::uint64_t{0} - 1, 999'999), kAttemptReportedMax);
}

TEST(LostEnd, ManyLossesInARowStayInTheRangeOfTheNumbers) {
  Lossy world;
  for (int i = 0; i < 20; ++i)
    world.accept({.events = {JournalEndLost{.lineage = {.generation = 1, .id = "id"},
                                            .attempts_skipped = ~0U}}});
  EXPECT_EQ(world.job("j1").attempts_lost, kAttemptReportedMax);
  EXPECT_GT(next_attempt(world.job("j1"), world.presence), AttemptNo(kAttemptReportedMax));
}

TEST(LostEnd, ANodesWordMovesTheNextNumberOn) {
  for (const bool swept : {false, true}) {
    Lossy world;
    EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(2));
    world.node("n1", 2, "b1", "i1",
               {present("j1", 4, swept), present("j1", 3, true), present("other", 9, true)});
    EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(5));
    // Also when the node does not report the run any more: what was saved and logged under that
    // number exists.
    world.node("n1", 2);
    EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(5));
    world.exited("j1", 1, "n0", 0, -1, 9);
    world.swept("j1", 1, "n0");
    ASSERT_EQ(world.job("j1").attempts.size(), 2U);
    EXPECT_EQ(world.job("j1").current()->number, AttemptNo(5));
    EXPECT_EQ(world.job("j1").attempt(AttemptNo(2)), nullptr);
    EXPECT_EQ(world.job("j1").before(*world.job("j1").current())->number, AttemptNo(1));
    EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(6));
  }
}

// A number that nobody gave out: soon there would be no next number.
TEST(LostEnd, ANumberBeyondReasonIsNotBelieved) {
  Lossy world;
  world.node("n1", 2, "b1", "i1",
             {present("j1", UINT32_MAX, true), present("j1", kAttemptReportedMax + 1, true)});
  EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(2));
}

TEST(LostEnd, TheNumberGoesOnFurtherThanAnyLostAttempt) {
  Lossy world;
  world.restart(0);
  EXPECT_EQ(world.job("j1").attempts_lost, 0U);
  EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(2));
  world.restart(3);
  EXPECT_EQ(world.job("j1").attempts_lost, 3U);
  EXPECT_EQ(next_attempt(world.job("j1"), world.presence), AttemptNo(2 + 3));
  world.submit("j2", Lossy::short_grace("later"));
  EXPECT_EQ(world.job("j2").attempts_lost, 0U);
}

// Found by the simulator: attempts were placed after a loss, and the loss itself was lost with
// their rows. Their numbers were given out again.
TEST(LostEnd, ASecondLossBehindTheFirstCountsBoth) {
  Lossy world;
  const Ledger before = world.ledger;
  const std::size_t rows = world.journal.size();
  world.restart(3);
  world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
  world.node("n1", 2);
  for (std::uint32_t more = 0; more < 3; ++more) {
    world.exited("j1", world.job("j1").current()->number.value, "n0", 0, -1, 9);
    world.swept("j1", world.job("j1").current()->number.value, "n0");
  }
  const AttemptNo highest = world.job("j1").current()->number;
  // None of these rows is left, and none of those that the first loss gave up.
  const std::uint64_t lost = world.journal.size() - rows + 3;
  world.ledger = before;
  world.restart(lost);
  EXPECT_GT(next_attempt(world.job("j1"), world.presence), highest);
}

// n1 may run an attempt that the journal does not have. The wait ends with a report from n1, its
// declaration as dead, or the end of the grace.
TEST(LostEnd, TheNextAttemptWaitsForEveryNodesWord) {
  for (const std::string_view end : {"word", "death", "grace"}) {
    Lossy world;
    world.restart(3);
    world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
    world.exited("j1", 1, "n0", 0, -1, 9);
    world.swept("j1", 1, "n0");
    ASSERT_EQ(world.job("j1").phase, JobPhase::Queued) << end;
    EXPECT_THAT(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
                testing::Contains(HasSubstr("waits for a word from 'n1'")));
    // Other jobs do not wait for it.
    world.submit("j2", SmallWorld::spec("other", 1, 1));
    EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
    if (end == "word") world.node("n1", 2);
    if (end == "death") world.put(DeclareNodeDead{.node = NodeName("n1")});
    if (end == "grace") {
      const std::optional<BootTime> wake_at =
          propose(world.ledger, world.presence, world.now, world.limits).wake_at;
      ASSERT_TRUE(wake_at);
      world.pass(std::chrono::minutes(2));
      world.see(
          HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(world.connections)});
    }
    EXPECT_EQ(world.job("j1").phase, JobPhase::Launching) << end;
    EXPECT_EQ(world.job("j1").current()->number, AttemptNo(2 + 3)) << end;
    EXPECT_EQ(world.job("j1").attempts_lost, 0U) << end;
  }
}

// An older copy of the directory shows no loss. Nodes that were sent more report this in their
// Hello, and until then the other nodes get no work of theirs.
TEST(LostEnd, AfterEveryStartKnownNodesAreHeardFirst) {
  for (const std::string_view end : {"word", "death", "time"}) {
    Lossy world;
    world.limits.hear_first = std::chrono::seconds(3);
    world.restart(0);
    world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
    world.submit("j2", SmallWorld::spec("other", 1, 1));
    ASSERT_EQ(world.job("j2").phase, JobPhase::Queued) << end;
    EXPECT_THAT(
        explain(world.ledger, world.presence, world.job("j2"), world.now, world.limits),
        ElementsAre("the controller has just started: waits for a word from 'n1', at most 3s"));
    EXPECT_EQ(propose(world.ledger, world.presence, world.now, world.limits).wake_at,
              world.now.boot + world.limits.hear_first);
    if (end == "word") world.node("n1", 2);
    if (end == "death") world.put(DeclareNodeDead{.node = NodeName("n1")});
    if (end == "time") {
      world.pass(world.limits.hear_first);
      world.see(
          HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(world.connections)});
    }
    EXPECT_EQ(world.job("j2").phase, JobPhase::Launching) << end;
    EXPECT_EQ(world.job("j1").phase, JobPhase::Running) << end;
  }
}

// The node was ordered to forget the run, and the journal lost this. Or its state directory is an
// older copy, and the run's processes live: only the node's sweep can tell.
TEST(LostEnd, AStartedRunThatANodeDoesNotHaveIsStopped) {
  Lossy world;
  world.restart(3);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
  world.node("n0", 2);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
  const AttemptRecord& first = world.job("j1").attempts.front();
  EXPECT_FALSE(first.parts.front().swept) << "nobody has searched for its processes";
  EXPECT_FALSE(world.ledger.indexes.device_holders.at(NodeName("n0")).empty());
  EXPECT_THAT(
      desired(world.ledger, NodeName("n0")),
      ElementsAre(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Stop}));
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  world.node("n1", 2);
  const Verdict& verdict = *world.job("j1").attempts.front().verdict;
  EXPECT_EQ(verdict.cls, FailureClass::Node);
  EXPECT_THAT(verdict.reason, HasSubstr("came back without the run directory of attempt 1"));
  EXPECT_FALSE(world.job("j1").attempts.front().charged) << "the loss is not the job's fault";
}

// Only its logs are waited for: they had been collected before the node forgot them.
TEST(LostEnd, ASweptRunThatANodeDoesNotHaveIsClosed) {
  Lossy world;
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  ASSERT_FALSE(world.job("j1").attempts.front().parts.front().logs_collected);
  world.restart(3);
  world.node("n0", 2);
  EXPECT_TRUE(world.job("j1").attempts.front().parts.front().logs_collected);
}

// The report of its ranks' ends arrived before that of its start, and the journal was cut between
// the two. Found by the simulator.
TEST(LostEnd, ARunThatHadEndedBeforeItsStartWasReportedIsNotStartedAgain) {
  Lossy world;
  world.submit("j2", Lossy::short_grace("quick"));
  world.exited("j2", 1, "n0", 0, 0);
  ASSERT_EQ(world.job("j2").phase, JobPhase::Completing);
  world.restart(3);
  world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
  EXPECT_TRUE(
      world.presence.nodes.at(NodeName("n0")).missing.contains({JobId("j2"), AttemptNo(1)}));
  world.swept("j2", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Succeeded);
}

// A node may have registered in the lost time: it is not in the ledger, and runs an attempt.
TEST(LostEnd, TheNextAttemptWaitsForNodesThatNobodyKnows) {
  Lossy world;
  world.limits.hear_after_loss = std::chrono::seconds(6);
  world.restart(3);
  world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
  world.node("n1", 2);
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  ASSERT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_THAT(
      explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
      testing::Contains("the journal's end was lost: waits for nodes that this journal does "
                        "not know, at most 6s"));
  world.pass(std::chrono::seconds(5));
  world.node("n2", 2, "b1", "i1", {present("j1", 3, false)});
  world.pass(std::chrono::seconds(1));
  world.see(HeartbeatHeard{.node = NodeName("n2"), .connection = ConnectionId(world.connections)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued) << "n2 runs attempt 3";
  world.node("n2", 2, "b1", "i1", {present("j1", 3, true)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// It may have come back in the lost time.
TEST(LostEnd, ANodeThatWasDeclaredDeadIsWaitedForAgain) {
  Lossy world;
  world.put(DeclareNodeDead{.node = NodeName("n1")});
  world.restart(3);
  EXPECT_FALSE(world.ledger.nodes.at(NodeName("n1")).dead);
  world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  world.put(DeclareNodeDead{.node = NodeName("n1")});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

TEST(LostEnd, ARunThatIsPresentGoesOn) {
  Lossy world;
  world.restart(3);
  world.node("n0", 2, "b1", "i1", {present("j1", 1, false)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
  EXPECT_THAT(
      desired(world.ledger, NodeName("n0")),
      ElementsAre(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Run}));
}

// Without a loss, an agent that does not mention its run does not prove that nothing is left of it:
// it must scan for what it had started.
TEST(LostEnd, WithoutALossNothingIsForgotten) {
  Lossy world;
  world.restart(0);
  world.node("n0", 2);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
  EXPECT_FALSE(world.job("j1").current()->part(NodeName("n0"))->swept);
}

// Two nodes of one attempt were being started; only n0 has reported its start.
struct Starting : SmallWorld {
  Starting() {
    accept({.events = {ControllerStarted{.epoch = Epoch(1), .cluster = ClusterId("c")}}});
    node("n0", 1);
    node("n1", 1);
    submit("j1", spec("starting", 2, 1));
    started("j1", 1, "n0");
    presence = Presence{};
    presence.listening_since = now.boot;
    accept({.events = {end_lost(ledger.lineage, {.rows = 3}, "id", /*ticks=*/0),
                       ControllerStarted{.epoch = Epoch(2), .cluster = ClusterId("c")}}});
    settle();
  }
  std::string broke_cause() { return job("j1").current()->broke_cause; }
};

TEST(LostEnd, AnAttemptThatWasBeingStartedGoesOnWhereAllNodesHaveIt) {
  Starting world;
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching) << "no node has said anything yet";
  world.node("n0", 1, "b1", "i1", {present("j1", 1, false)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  world.node("n1", 1, "b1", "i1", {present("j1", 1, false)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  world.started("j1", 1, "n1");
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running) << "its agent reports all facts again";
}

TEST(LostEnd, AnAttemptThatWasBeingStartedIsBrokenWhereANodeDoesNotHaveIt) {
  Starting world;
  world.node("n0", 1, "b1", "i1", {present("j1", 1, false)});
  world.node("n1", 1);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
  EXPECT_EQ(world.broke_cause(),
            "node 'n1' does not have attempt 1, which was being started when the journal's end was "
            "lost");
}

TEST(LostEnd, AnAttemptThatWasBeingStartedIsBrokenWhereANodeIsGone) {
  for (const std::string_view end : {"death", "grace"}) {
    Starting world;
    world.node("n0", 1, "b1", "i1", {present("j1", 1, false)});
    if (end == "death") world.put(DeclareNodeDead{.node = NodeName("n1")});
    if (end == "grace") {
      world.pass(std::chrono::hours(1));
      world.see(
          HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(world.connections)});
    }
    EXPECT_EQ(world.job("j1").phase, JobPhase::Draining) << end;
    EXPECT_THAT(world.broke_cause(), HasSubstr("node 'n1'")) << end;
  }
}

// A job that was archived while a node was away: what still runs of it there uses devices that are
// not reserved.
TEST(LostEnd, ARunOfAnArchivedJobKeepsItsNode) {
  SmallWorld world;
  world.accept({.events = {JobArchived{.job = JobId("gone"),
                                       .name = "gone",
                                       .outcome = Outcome::Cancelled,
                                       .ended_at = world.now.wall}}});
  world.node("n0", 1, "b1", "i1", {present("gone", 1, false)});
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_TRUE(may_forget(world.ledger, NodeName("n0"), JobId("gone"), AttemptNo(1)))
      << "the agent does so when it is swept";
  world.node("n0", 1, "b1", "i1", {present("gone", 1, true)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// The operator ends the worker of a run that no journal names, and its agent reports that nothing
// is left: the node is free, without another Hello.
TEST(LostEnd, TheWordThatAnUnknownRunIsSweptFreesTheNode) {
  SmallWorld world;
  world.node("n0", 1, "b1", "i1", {present("gone", 3, false), present("gone", 4, false)});
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  const auto say_swept = [&](std::uint32_t attempt, std::uint64_t connection) {
    world.see(SweptHeard{.node = NodeName("n0"),
                         .connection = ConnectionId(connection),
                         .job = JobId("gone"),
                         .attempt = AttemptNo(attempt)});
  };
  say_swept(3, world.connections);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued) << "another one is left";
  say_swept(4, world.connections - 1);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued)
      << "what a connection says that another has replaced is not news";
  say_swept(4, world.connections);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

}  // namespace
}  // namespace muster::core
