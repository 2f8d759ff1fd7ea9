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
       {world.started("j9", 1, "n0"), world.started("j1", 2, "n0"), world.started("j1", 1, "n1"), world.exited("j1", 1, "n0", 7, 1)}) {
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
  EXPECT_EQ(decision.refusal->message, "submitting job 'c': 2 jobs are queued already, as many as the limit allows; wait for some to start, or cancel some");
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
  const RegisterNode other{.node = NodeName("n0"), .instance = InstanceId("i2"), .boot_id = BootId("b1"), .inventory = SmallWorld::inventory(1, "n0")};
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
  EXPECT_TRUE(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(1), .step = 5}).events.empty());
  EXPECT_EQ(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(2), .step = 5}).events.size(), 1U);
  EXPECT_TRUE(world.put(ProposeCheckpoint{.job = JobId("j1"), .attempt = AttemptNo(2), .step = 5}).events.empty());
}

// The fence is looked at by decide() itself: a proposal made too early is nothing.
TEST(Decide, AnEarlyEndIsNothing) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 2, 1));
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  EXPECT_TRUE(world.put(ProposeEnd{.job = JobId("j1"), .attempt = AttemptNo(1), .fence = "because"}).events.empty());
  EXPECT_TRUE(world.put(ProposeSwept{.job = JobId("j1"), .attempt = AttemptNo(1), .node = NodeName("n1"), .reason = "rebooted"}).events.empty());
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
}

TEST(Decide, ARunDirectoryMayGoWhenSweptAndCollected) {
  SmallWorld world;
  world.limits.archive_after = std::chrono::hours(1);
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  const auto forget = [&] { return may_forget(world.ledger, NodeName("n0"), JobId("j1"), AttemptNo(1)); };
  world.exited("j1", 1, "n0", 0, 0);
  world.logs("j1", 1, "n0");
  EXPECT_FALSE(forget());
  world.swept("j1", 1, "n0");
  EXPECT_TRUE(forget());
  EXPECT_THAT(desired(world.ledger, NodeName("n0")), testing::ElementsAre(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Forget}));
  world.put(ProposeArchive{.job = JobId("j1")});
  EXPECT_TRUE(forget());
  EXPECT_TRUE(desired(world.ledger, NodeName("n0")).empty());
}

}  // namespace
}  // namespace muster::core
