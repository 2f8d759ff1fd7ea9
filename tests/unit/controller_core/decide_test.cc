#include <gmock/gmock.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

TEST(Decide, RepeatedFactsAreNoNews) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  EXPECT_EQ(world.started("j1", 1, "n0").events.size(), 1U);
  EXPECT_TRUE(world.started("j1", 1, "n0").events.empty());
  EXPECT_EQ(world.exited("j1", 1, "n0", 0, 0).events.size(), 1U);
  EXPECT_TRUE(world.exited("j1", 1, "n0", 0, 1).events.empty());
  EXPECT_EQ(world.swept("j1", 1, "n0").events.size(), 1U);
  EXPECT_TRUE(world.swept("j1", 1, "n0").events.empty());
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
}

TEST(Decide, FactsOfStrangersAreDroppedQuietly) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  for (const Decision& decision :
       {world.started("j9", 1, "n0"), world.started("j1", 2, "n0"), world.started("j1", 1, "n1"),
        world.exited("j1", 1, "n0", 7, 1)}) {
    EXPECT_TRUE(decision.events.empty());
    EXPECT_FALSE(decision.refusal);
  }
}

TEST(Decide, QueueHasALimitThatIsNamed) {
  SmallWorld world;
  world.limits.queued_jobs_max = 2;
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  world.submit("j2", SmallWorld::spec("b", 1, 1));
  const Decision decision = world.submit("j3", SmallWorld::spec("c", 1, 1));
  ASSERT_TRUE(decision.refusal);
  EXPECT_EQ(decision.refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(decision.refusal->message,
            "submitting job 'c': 2 jobs are queued already, as many as the limit allows; wait for "
            "some to start, or cancel some");
}

TEST(Decide, RegistrationIsAnEventOnlyWhenSomethingChanged) {
  SmallWorld world;
  world.node("n0", 1);
  const std::size_t events = world.journal.size();
  world.node("n0", 1);
  EXPECT_EQ(world.journal.size(), events);
  world.node("n0", 2);
  EXPECT_EQ(world.journal.size(), events + 1);
}

TEST(Decide, ASecondAgentMayTakeASilentName) {
  SmallWorld world;
  world.node("n0", 1);
  const RegisterNode other{.node = NodeName("n0"),
                           .instance = InstanceId("i2"),
                           .boot_id = BootId("b1"),
                           .inventory = SmallWorld::inventory(1, "n0")};
  EXPECT_EQ(world.put(other).refusal->code, ErrorCode::Conflict);
  world.pass(std::chrono::seconds(4));
  EXPECT_FALSE(world.put(other).refusal);
}

TEST(Decide, LateCheckpointsOfAFencedAttemptAreNotAccepted) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  ASSERT_EQ(world.job("j1").attempts.size(), 2U);
  EXPECT_TRUE(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(1), .step = 5})
                  .events.empty());
  EXPECT_EQ(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(2), .step = 5})
                .events.size(),
            1U);
  EXPECT_TRUE(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(2), .step = 5})
                  .events.empty());
}

// decide() itself checks the fence: a proposal that is too early has no effect.
TEST(Decide, AnEarlyEndIsNothing) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 2, 1));
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  EXPECT_TRUE(world.put(ProposeEnd{.job = JobId("j1"), .attempt = AttemptNo(1), .fence = "because"})
                  .events.empty());
  EXPECT_TRUE(
      world.put(ProposeSwept{.job = JobId("j1"), .attempt = AttemptNo(1), .node = NodeName("n1")})
          .events.empty());
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
}

TEST(Decide, ARunDirectoryMayGoWhenSweptAndCollected) {
  SmallWorld world;
  world.limits.archive_after = std::chrono::hours(1);
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  const auto forget = [&] {
    return may_forget(world.ledger, NodeName("n0"), JobId("j1"), AttemptNo(1));
  };
  world.exited("j1", 1, "n0", 0, 0);
  world.logs("j1", 1, "n0");
  EXPECT_FALSE(forget());
  world.swept("j1", 1, "n0");
  EXPECT_TRUE(forget());
  EXPECT_THAT(desired(world.ledger, NodeName("n0")),
              testing::ElementsAre(
                  Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Forget}));
  world.put(ProposeArchive{.job = JobId("j1")});
  EXPECT_TRUE(forget());
  EXPECT_TRUE(desired(world.ledger, NodeName("n0")).empty());
}

// Regression: a failed setup ended the job before its log was with the controller, and muster run
// did not show the log.
TEST(Decide, ARankThatNeverRanMayHaveALogOfItsNode) {
  for (const bool follow : {true, false}) {
    SmallWorld world;
    world.node("n0", 2);
    world.submit("j1", SmallWorld::spec("train", 1, 2));
    v1::Fact failed = world.fact("j1", 1), swept = failed;
    failed.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
    swept.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
    swept.mutable_swept()->set_logs_follow(follow);
    world.report("n0", failed);
    world.report("n0", swept);
    const bool forget = may_forget(world.ledger, NodeName("n0"), JobId("j1"), AttemptNo(1));
    EXPECT_EQ(forget, !follow)
        << "an agent that knows no ranks sends no end of a log: nobody waits for it";
    world.logs("j1", 1, "n0");
    EXPECT_TRUE(may_forget(world.ledger, NodeName("n0"), JobId("j1"), AttemptNo(1)));
  }
}

// A damaged journal may be cut anywhere (--accept-loss), also inside of one batch. The controller
// replaces what is missing, and no assertion fails.
struct Cut : SmallWorld {
  // Loses everything after the last row of this kind.
  template <class Kind>
  void behind_last() {
    while (!std::holds_alternative<Kind>(journal.back().second.body)) journal.pop_back();
    ledger = Ledger{};
    for (const auto& [index, event] : journal) apply(ledger, index, event);
    settle();
  }
};

TEST(CutJournal, AnAttemptsEndWithoutItsJobsIsFollowedByIt) {
  Cut world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.put(CancelJob{.job = JobId("j1")});
  world.swept("j1", 1, "n0");
  world.behind_last<AttemptEnded>();
  EXPECT_EQ(world.job("j1").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.job("j1").verdict->cls, FailureClass::Operator);
}

TEST(CutJournal, ACompletedAttemptWithoutItsJobsEndSucceeds) {
  Cut world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.exited("j1", 1, "n0", 0, 0);
  world.swept("j1", 1, "n0");
  world.behind_last<AttemptCompleted>();
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
}

// No other report of it would ever arrive, because its agent was sent an acknowledgement.
TEST(CutJournal, ABadEndThatDidNotBreakTheAttemptBreaksIt) {
  for (const bool rank_ended : {true, false}) {
    Cut world;
    world.node("n0", 1);
    world.submit("j1", SmallWorld::spec("train", 1, 1));
    if (rank_ended) {
      world.exited("j1", 1, "n0", 0, 3);
      world.behind_last<RankExited>();
    } else {
      world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
      world.behind_last<NodeSwept>();
    }
    EXPECT_EQ(world.job("j1").attempts[0].broke_cause,
              "attempt 1 had broken when the journal's end was lost");
    if (!rank_ended) continue;
    world.swept("j1", 1, "n0");
    EXPECT_EQ(world.job("j1").attempts[0].verdict->cls, FailureClass::UserError)
        << "what the rank said is the verdict all the same";
  }
}

TEST(CutJournal, ACancelThatLostItsEffectCanBeAskedForAgain) {
  Cut world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.submit("j2", SmallWorld::spec("waits", 1, 1));
  for (const char* id : {"j1", "j2"}) {
    world.put(CancelJob{.job = JobId(id)});
    world.behind_last<CancelRequested>();
    const Decision again = world.put(CancelJob{.job = JobId(id)});
    EXPECT_EQ(again.events.size(), 1U) << "only what is missing";
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_TRUE(world.put(CancelJob{.job = JobId("j1")}).events.empty());
}

// The marks of an incident: its first report arrives; the last rank's exit settles the verdict;
// then the sweep.
TEST(Incident, IsDetectedByItsFirstWordAndDecidedByItsLast) {
  SmallWorld world;
  world.node("n0", 2);
  world.submit("j1", SmallWorld::spec("train", 1, 2));
  world.started("j1", 1, "n0");
  // Read again each time, because the next attempt moves them.
  const auto attempt = [&]() -> const AttemptRecord& { return world.job("j1").attempts[0]; };
  EXPECT_FALSE(attempt().decided_at());
  world.exited("j1", 1, "n0", 1, -1, 9, std::chrono::milliseconds(-3));
  const WallTime first = world.now.wall;
  EXPECT_EQ(attempt().fault_time, first - std::chrono::milliseconds(3));
  EXPECT_EQ(attempt().detected_at, first);
  EXPECT_FALSE(attempt().decided_at());
  world.pass(std::chrono::milliseconds(40));
  world.exited("j1", 1, "n0", 0, 1);
  world.pass(std::chrono::milliseconds(20));
  world.swept("j1", 1, "n0");
  EXPECT_EQ(attempt().detected_at, first);
  EXPECT_EQ(attempt().decided_at(), first + std::chrono::milliseconds(40));
  EXPECT_EQ(attempt().ended_at, first + std::chrono::milliseconds(60));
}

TEST(Incident, WithoutTheLastExitsIsDecidedWhenTheFenceHolds) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  v1::Fact failed = world.fact("j1", 1);
  failed.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
  world.report("n0", std::move(failed));
  world.pass(std::chrono::milliseconds(40));
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  const AttemptRecord& attempt = world.job("j1").attempts[0];
  EXPECT_EQ(attempt.decided_at(), attempt.ended_at);
  EXPECT_NE(attempt.decided_at(), attempt.detected_at);
}

// Every exit was good and known long before; the attempt breaks because success.regex never
// matched.
TEST(Incident, IsNotDecidedBeforeItIsDetected) {
  SmallWorld world;
  world.node("n0", 1);
  v1::JobSpec spec = SmallWorld::spec("train", 1, 1);
  spec.mutable_success()->set_regex("done");
  world.submit("j1", spec);
  world.exited("j1", 1, "n0", 0, 0);
  world.pass(std::chrono::seconds(2));
  world.swept("j1", 1, "n0");
  const AttemptRecord& attempt = world.job("j1").attempts[0];
  ASSERT_TRUE(attempt.broke_at);
  EXPECT_EQ(attempt.decided_at(), attempt.detected_at);
}

// Its connection was replaced, the controller restarted, or another machine has the name. In every
// case, "nothing is left" from an agent that has never seen the ranks would free devices on which
// they still compute.
TEST(Decide, OnlyWhoCouldSeeTheRanksSaysThatNothingIsLeft) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.started("j1", 1, "n0");
  for (const auto& kind : {"swept", "gone"}) {
    v1::Fact what = world.fact("j1", 1);
    if (kind == std::string("swept")) {
      what.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
    } else {
      what.mutable_start_failed()->set_why(v1::START_FAILURE_GONE);
    }
    EXPECT_TRUE(world.report("n0", what, "stranger").events.empty()) << kind;
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
  world.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  // Another state directory on the same boot has scanned for them by their process tag.
  world.node("n0", 1, "b1", "i2");
  v1::Fact what = world.fact("j1", 1);
  what.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
  EXPECT_FALSE(world.report("n0", what, "i2").events.empty());
  EXPECT_EQ(world.job("j1").attempts.size(), 2U);
}

// An agent of a newer version may know more reasons of a sweep. Nothing is left on the node all the
// same, so its devices are free.
TEST(Decide, AReasonOfASweepThatIsNotKnownIsAPlainEnd) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  world.started("j1", 1, "n0");
  world.exited("j1", 1, "n0", 0, 3);
  world.swept("j1", 1, "n0", static_cast<v1::SweptWhy>(99));
  const AttemptRecord& first = world.job("j1").attempts.front();
  EXPECT_TRUE(first.parts.front().swept);
  EXPECT_EQ(first.parts.front().swept_why, SweptWhy::Ended);
  EXPECT_EQ(world.job("j1").attempts.size(), 2U);
}

}  // namespace
}  // namespace muster::core
