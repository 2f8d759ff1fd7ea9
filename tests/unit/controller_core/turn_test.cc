#include "controller/core/turn.h"

#include <gmock/gmock.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

struct Seen final : TurnWatcher {
  std::vector<std::pair<JournalIndex, std::size_t>> befores, afters;  // index, jobs in the ledger
  void before(const Row& row, const Ledger& ledger) override {
    befores.emplace_back(row.index, ledger.jobs.size());
  }
  void after(const Row& row, const Ledger& ledger) override {
    afters.emplace_back(row.index, ledger.jobs.size());
  }
};

TurnItem submission(const std::string& id, const Now& heard) {
  return {.heard = heard,
          .what = Asked{.input = SubmitJob{.job = JobId(id),
                                           .request_id = RequestId("request-" + id),
                                           .spec = SmallWorld::spec("job-" + id, 1, 1),
                                           .spec_hash = "hash"}}};
}

TEST(Turn, AnswersEachInputAndShowsEachRowBeforeAndAfterItIsApplied) {
  SmallWorld world;
  world.node("n0", 4);
  Seen seen;
  const JournalIndex first(world.last.value + 1);
  const std::vector<TurnItem> items = {
      submission("j1", world.now),
      submission("j1", world.now),
      submission("j2", world.now),
      {.heard = world.now, .what = Asked{.input = CancelJob{.job = JobId("none"), .reason = {}}}}};
  const Turned turned = turn(
      world, {.items = items, .now = world.now, .limits = world.limits, .judge_until = {}}, seen);
  ASSERT_THAT(turned.answers, SizeIs(4));
  EXPECT_EQ(turned.answers[0].job, JobId("j1"));
  EXPECT_EQ(turned.answers[0].rows, 1U);
  EXPECT_TRUE(turned.answers[1].repeated);
  EXPECT_EQ(turned.answers[1].rows, 0U);
  EXPECT_EQ(turned.answers[2].rows, 1U);
  ASSERT_TRUE(turned.answers[3].refusal);
  EXPECT_EQ(turned.answers[3].refusal->code, ErrorCode::NotFound);
  ASSERT_THAT(turned.rows, SizeIs(2)) << "nothing is proposed without a horizon";
  EXPECT_EQ(turned.rows[0].index, first);
  EXPECT_EQ(turned.rows[1].index, JournalIndex(first.value + 1));
  EXPECT_EQ(world.last, turned.rows[1].index);
  using Rows = std::vector<std::pair<JournalIndex, std::size_t>>;
  EXPECT_EQ(seen.befores, (Rows{{turned.rows[0].index, 0}, {turned.rows[1].index, 1}}));
  EXPECT_EQ(seen.afters, (Rows{{turned.rows[0].index, 1}, {turned.rows[1].index, 2}}));
}

TEST(Turn, ObservesWhatFollowsAnInputOnlyIfTheInputWasTaken) {
  SmallWorld world;
  Seen seen;
  const auto hello = [&](const std::string& instance, std::uint64_t connection) {
    return TurnItem{.heard = world.now,
                    .what = Asked{.input = RegisterNode{.node = NodeName("n0"),
                                                        .instance = InstanceId(instance),
                                                        .boot_id = BootId("b1"),
                                                        .inventory = SmallWorld::inventory(1, "n0"),
                                                        .version = "test"},
                                  .then = Connected{.node = NodeName("n0"),
                                                    .connection = ConnectionId(connection),
                                                    .instance = InstanceId(instance),
                                                    .boot_id = BootId("b1")}}};
  };
  const std::vector<TurnItem> items = {hello("i1", 1), hello("i2", 2)};
  const Turned turned = turn(
      world, {.items = items, .now = world.now, .limits = world.limits, .judge_until = {}}, seen);
  EXPECT_FALSE(turned.answers[0].refusal);
  EXPECT_TRUE(turned.answers[1].refusal) << "another agent has the name";
  EXPECT_EQ(world.presence.nodes.at(NodeName("n0")).connection, ConnectionId(1));
}

TEST(Turn, WhilePausedRefusesEveryInputWithTheReasonAndStillObserves) {
  SmallWorld world;
  world.node("n0", 1);
  Seen seen;
  world.pass(seconds(2));
  const ConnectionId connection = world.presence.nodes.at(NodeName("n0")).connection;
  const std::vector<TurnItem> items = {
      submission("j1", world.now),
      {.heard = world.now,
       .what = HeartbeatHeard{.node = NodeName("n0"), .connection = connection}}};
  const Turned turned = turn(world,
                             {.items = items,
                              .now = world.now,
                              .limits = world.limits,
                              .paused = "the journal is behind",
                              .judge_until = {}},
                             seen);
  ASSERT_TRUE(turned.answers[0].refusal);
  EXPECT_EQ(turned.answers[0].refusal->message, "the journal is behind");
  EXPECT_THAT(turned.rows, IsEmpty());
  EXPECT_EQ(world.presence.nodes.at(NodeName("n0")).last_heard, world.now.boot);
}

TEST(Turn, GoesOnInTheNextTurnWhenItMayNotPlaceMore) {
  SmallWorld world;
  world.node("n0", 4);
  Seen seen;
  const std::vector<TurnItem> items = {submission("j1", world.now), submission("j2", world.now),
                                       submission("j3", world.now)};
  const TurnInput one{.items = items,
                      .now = world.now,
                      .limits = world.limits,
                      .judge_until = world.now.boot,
                      .placing = {.placements = 2}};
  const Turned first = turn(world, one, seen);
  EXPECT_EQ(first.wake_at, world.now.boot) << "all others that wait come first";
  EXPECT_TRUE(world.placing_goes_on);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
  TurnInput next = one;
  next.items = {};
  (void)turn(world, next, seen);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Launching);
}

TEST(Turn, SaysThatItIsRestlessWhenItsRoundsDoNotReachTheFixedPoint) {
  SmallWorld world;
  world.node("n0", 1);
  Seen seen;
  const std::vector<TurnItem> items = {submission("j1", world.now)};
  const Turned turned = turn(world,
                             {.items = items,
                              .now = world.now,
                              .limits = world.limits,
                              .judge_until = world.now.boot,
                              .rounds_max = 1},
                             seen);
  EXPECT_TRUE(turned.restless);
  EXPECT_EQ(turned.wake_at, world.now.boot);
}

struct Starting : SmallWorld {
  Starting() {
    node("n0", 1);
    pass(std::chrono::minutes(10));
    hear();
    submit("j1", spec("train", 1, 1));
    EXPECT_EQ(job("j1").phase, JobPhase::Launching);
  }
  void hear() {
    observe(presence, ledger,
            HeartbeatHeard{.node = NodeName("n0"),
                           .connection = presence.nodes.at(NodeName("n0")).connection},
            now);
  }
  void fail(const std::string& id, std::uint32_t attempt) {
    const std::string on = job(id).current()->parts.front().placed.node.str();
    started(id, attempt, on);
    exited(id, attempt, on, 0, -1, 9);
    swept(id, attempt, on);
  }
  Turned judge(BootTime until) {
    Seen seen;
    return turn(*this, {.items = {}, .now = now, .limits = limits, .judge_until = until}, seen);
  }
};

// Regression: the start's time-out was measured by the wall clock, up to the turn's begin. A
// controller that had been stopped for a minute, or whose disk had, broke attempts whose reports
// of their start were waiting in its inbox.
TEST(Turn, JudgesNothingBehindTheHorizonByTheWallClockEither) {
  Starting world;
  world.presence.placed_at.clear();  // as if an earlier controller had placed it
  const BootTime horizon = world.now.boot + seconds(1);
  world.pass(world.limits.start_timeout + seconds(5));
  world.hear();
  EXPECT_THAT(world.judge(horizon).rows, IsEmpty());
  EXPECT_THAT(world.judge(world.now.boot).rows, SizeIs(1)) << "there it did not start in time";
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
}

// Regression: a wall clock that was set forward broke attempts that were just being started.
TEST(Turn, ACorrectedWallClockDoesNotEndAStart) {
  Starting world;
  world.now.wall += std::chrono::hours(1);
  world.pass(seconds(1));
  world.hear();
  EXPECT_THAT(world.judge(world.now.boot).rows, IsEmpty());
  world.pass(world.limits.start_timeout);
  world.hear();
  EXPECT_THAT(world.judge(world.now.boot).rows, SizeIs(1));
}

TEST(Turn, KnowsWhenItPlacedOnlyWhatHasNotEnded) {
  Starting world;
  EXPECT_TRUE(world.presence.placed_at.contains({JobId("j1"), AttemptNo(1)}));
  world.started("j1", 1, "n0");
  world.exited("j1", 1, "n0", 0, 0);
  world.swept("j1", 1, "n0");
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
  EXPECT_THAT(world.presence.placed_at, IsEmpty());
}

TEST(Turn, KnowsSinceWhenAJobIsQueuedAgainWhileItIs) {
  Starting world;
  world.fail("j1", 1);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching) << "it does not wait";
  EXPECT_THAT(world.presence.queued_again_at, IsEmpty());
  v1::JobSpec waits = SmallWorld::spec("waits", 1, 1);
  waits.mutable_recovery()->mutable_backoff()->set_seconds(40);
  world.node("n1", 1);
  world.submit("j2", waits);
  world.fail("j2", 1);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Queued);
  EXPECT_THAT(world.presence.queued_again_at,
              testing::ElementsAre(testing::Pair(JobId("j2"), world.now.boot)));
  Seen seen;
  const TurnItem cancel{.heard = world.now, .what = Asked{.input = CancelJob{.job = JobId("j2")}}};
  turn(world, {.items = {&cancel, 1}, .now = world.now, .limits = world.limits, .judge_until = {}},
       seen);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_THAT(world.presence.queued_again_at, IsEmpty());
}

TEST(FirstTurn, BeginsAnEpochAndCancelsWhatCannotBeRead) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.submit("j2", SmallWorld::spec("two", 1, 1));
  Seen seen;
  const Epoch before = world.ledger.epoch;
  const Turned turned = first_turn(world,
                                   {.now = world.now,
                                    .new_cluster = ClusterId("new"),
                                    .version = "test",
                                    .unreadable = {{JobId("j2"), "row 3 makes no sense"},
                                                   {JobId("gone"), "row 4 makes no sense"}}},
                                   world.limits, seen);
  EXPECT_EQ(world.ledger.epoch, Epoch(before.value + 1));
  EXPECT_EQ(world.ledger.cluster, ClusterId("new"));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_THAT(seen.afters, SizeIs(turned.rows.size()));
}

}  // namespace
}  // namespace muster::core
