// recovery.backoff: how long a job waits before its next attempt.
#include <gmock/gmock.h>

#include "controller/core/queue_why.h"
#include "controller/core/recovery/next_attempt.h"
#include "controller/core/recovery/pause.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::Contains;
using testing::IsEmpty;

struct Nobody final : TurnWatcher {
  void after(const Row& /*row*/, const Ledger& /*ledger*/) override {}
};

struct Waiting : SmallWorld {
  explicit Waiting(Duration backoff) {
    node("n0", 1);
    v1::JobSpec train = spec("train", 1, 1);
    if (backoff > Duration::zero())
      train.mutable_recovery()->mutable_backoff()->set_seconds(backoff / seconds(1));
    submit("j1", train);
  }
  [[nodiscard]] std::uint32_t attempt() const { return job("j1").current()->number.value; }
  // Rank 0 of the current attempt is killed at this step. -1: before any.
  void fails(std::int64_t step = -1) {
    const std::uint32_t number = attempt();
    started("j1", number, "n0");
    v1::Fact end = fact("j1", number);
    end.mutable_exited()->set_code(-1);
    end.mutable_exited()->set_signal(9);
    if (step >= 0) end.mutable_exited()->set_step(step);
    report("n0", std::move(end));
    swept("j1", number, "n0");
  }
  void wait(Duration time) {
    pass(time);
    for (const auto& [name, seen] : std::map(presence.nodes))
      observe(presence, ledger, HeartbeatHeard{.node = name, .connection = seen.connection}, now);
    settle();
  }
  [[nodiscard]] Proposal proposal() const { return propose(ledger, presence, now, limits); }
  // The attempt fails, and the next one is placed exactly this much later.
  void fails_and_waits(Duration most, std::int64_t step = -1) {
    const std::uint32_t before = attempt();
    fails(step);
    ASSERT_EQ(job("j1").phase, JobPhase::Queued);
    EXPECT_EQ(proposal().wake_at, now.boot + most) << "it wakes for this alone";
    EXPECT_THAT(proposal().inputs, IsEmpty());
    wait(most - Duration(1));
    ASSERT_EQ(attempt(), before);
    wait(Duration(1));
    ASSERT_EQ(attempt(), before + 1);
    ASSERT_EQ(job("j1").phase, JobPhase::Launching);
  }
};

TEST(Pause, DoublesWithEachFailureUpToItsLimit) {
  EXPECT_EQ(doubled_pause(seconds(10), 0, seconds(30)), seconds(10));
  EXPECT_EQ(doubled_pause(seconds(10), 1, seconds(30)), seconds(10));
  EXPECT_EQ(doubled_pause(seconds(10), 2, seconds(30)), seconds(20));
  EXPECT_EQ(doubled_pause(seconds(10), 3, seconds(30)), seconds(30));
  EXPECT_EQ(doubled_pause(seconds(10), UINT32_MAX, seconds(30)), seconds(30));
}

TEST(Backoff, ByDefaultTheNextAttemptIsPlacedAtOnce) {
  Waiting world(Duration::zero());
  world.fails();
  EXPECT_TRUE(world.job("j1").attempts.front().charged);
  EXPECT_EQ(world.attempt(), 2U);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

TEST(Backoff, DoublesWithEachChargedAttemptThatGotNoFurther) {
  Waiting world(seconds(40));
  for (const int wait : {40, 80, 160, 320}) world.fails_and_waits(seconds(wait));
  world.fails();
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed) << "five attempts without a step";
}

TEST(Backoff, DoublesUpToTheBoundAndALongerOneIsTheBoundItself) {
  EXPECT_EQ(Limits().backoff_max, std::chrono::minutes(10));
  Waiting world(seconds(40));
  world.limits.backoff_max = seconds(100);
  for (const int wait : {40, 80, 100, 100}) world.fails_and_waits(seconds(wait));
  Waiting longer(seconds(200));
  longer.limits.backoff_max = seconds(100);
  for (int count = 0; count < 3; ++count) longer.fails_and_waits(seconds(200));
}

TEST(Backoff, IsThePlainValueAgainAfterProgress) {
  Waiting world(seconds(40));
  world.fails_and_waits(seconds(40), 3);
  world.fails_and_waits(seconds(40), 3);
  world.fails_and_waits(seconds(80), 2);
  world.fails_and_waits(seconds(40), 4);
}

// A fault of what all of them use: they must not hide one another, nor a job that could start.
TEST(Backoff, ManyThatWaitAreNoQueue) {
  Waiting world(seconds(40));
  world.fails();
  for (int count = 2; count <= 6; ++count) {
    const std::string id = "j" + std::to_string(count);
    v1::JobSpec train = SmallWorld::spec("train" + std::to_string(count), 1, 1);
    train.mutable_recovery()->mutable_backoff()->set_seconds(40);
    world.submit(id, train);
    world.started(id, 1, "n0");
    world.exited(id, 1, "n0", 0, -1, 9);
    world.swept(id, 1, "n0");
    ASSERT_EQ(world.job(id).phase, JobPhase::Queued);
  }
  std::vector<JobId> ids;
  for (int count = 1; count <= 6; ++count) ids.emplace_back("j" + std::to_string(count));
  const auto why = queue_why(world.ledger, world.presence, ids, world.now, world.limits);
  for (const JobId& id : ids)
    EXPECT_EQ(why.at(id), "for another 40s before attempt 2 (recovery.backoff)");
}

TEST(Backoff, ACancelDoesNotWait) {
  Waiting world(seconds(40));
  world.fails();
  world.wait(seconds(10));
  EXPECT_FALSE(world.put(CancelJob{.job = JobId("j1")}).refusal);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.attempt(), 1U);
}

TEST(Backoff, AnAttemptThatWasNotChargedCausesNoWait) {
  Waiting world(seconds(40));
  v1::Fact taken = world.fact("j1", 1);
  taken.mutable_start_failed()->set_why(v1::START_FAILURE_PORT);
  world.report("n0", std::move(taken));
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  ASSERT_FALSE(world.job("j1").attempts.front().charged);
  EXPECT_EQ(world.attempt(), 2U);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// It waits in front of the others, and in nobody's way.
TEST(Backoff, JobsBehindPassAndTheReasonIsGiven) {
  Waiting world(seconds(40));
  world.submit("j2", SmallWorld::spec("behind", 1, 1));
  ASSERT_EQ(world.job("j2").phase, JobPhase::Queued);
  world.fails();
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  world.submit("j3", SmallWorld::spec("third", 1, 1));
  world.wait(seconds(3));
  const std::string text = "for another 37s before attempt 2 (recovery.backoff)";
  EXPECT_THAT(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
              Contains("waits: " + text));
  const auto reasons =
      queue_why(world.ledger, world.presence, {JobId("j1"), JobId("j3")}, world.now, world.limits);
  EXPECT_EQ(reasons.at(JobId("j1")), text);
  EXPECT_THAT(reasons.at(JobId("j3")), testing::StartsWith("need 1 node"));
  // Behind the wait it is the first again.
  world.wait(seconds(37));
  world.started("j2", 1, "n0");
  world.exited("j2", 1, "n0", 0, 0);
  world.swept("j2", 1, "n0");
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
}

// If the nodes could never hold the job, the end of the wait would change nothing.
TEST(Backoff, OfAJobThatNoNodeCouldHoldIsNotTheReason) {
  Waiting world(seconds(40));
  world.fails();
  world.pass(world.limits.silent_after);
  EXPECT_FALSE(world.put(DeclareNodeDead{.node = NodeName("n0")}).refusal);
  EXPECT_THAT(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
              Contains(testing::StartsWith("waits for other nodes: ")));
}

TEST(Backoff, ARestartedControllerCountsFromTheRecordedEnd) {
  Waiting world(seconds(40));
  world.fails();
  world.wait(seconds(15));
  world.presence.queued_again_at.clear();
  EXPECT_EQ(world.proposal().wake_at, world.now.boot + seconds(25));
  world.wait(seconds(25) - Duration(1));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  world.wait(Duration(1));
  EXPECT_EQ(world.attempt(), 2U);
}

TEST(Backoff, AClockThatWasSetBackBeforeTheRestartDoesNotMakeItLonger) {
  Waiting world(seconds(40));
  world.fails();
  world.presence.queued_again_at.clear();
  world.now.wall -= hours(1);
  world.settle();
  EXPECT_EQ(world.attempt(), 2U);
}

TEST(Backoff, ACorrectedWallClockChangesNothing) {
  for (const Duration correction : {Duration(hours(1)), Duration(-hours(1))}) {
    Waiting world(seconds(40));
    world.fails();
    world.now.wall += correction;
    world.settle();
    EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
    EXPECT_EQ(world.proposal().wake_at, world.now.boot + seconds(40));
  }
}

// After a stall a turn judges deadlines for a moment before it. By the wall clock, the attempt
// would end after that moment, as if the clock had been set back.
TEST(Backoff, IsNotSkippedInATurnThatJudgesThePast) {
  Waiting world(seconds(40));
  world.started("j1", 1, "n0");
  v1::Fact end = world.fact("j1", 1), gone = world.fact("j1", 1);
  end.mutable_exited()->set_code(-1);
  end.mutable_exited()->set_signal(9);
  gone.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
  for (const v1::Fact& fact : {end, gone})
    world.accept(
        decide(world.ledger, world.presence,
               ReportFact{.node = NodeName("n0"), .instance = InstanceId("i1"), .fact = fact},
               world.now, world.limits));
  ASSERT_EQ(world.job("j1").phase, JobPhase::Draining);
  Nobody nobody;
  const Turned turned = turn(world,
                             {.items = {},
                              .now = world.now,
                              .limits = world.limits,
                              .judge_until = world.now.boot - seconds(2)},
                             nobody);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_EQ(turned.wake_at, world.now.boot + seconds(40));
}

}  // namespace
}  // namespace muster::core
