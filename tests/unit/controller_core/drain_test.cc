// What an operator says of a node: drain, undrain, labels, removal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/core/nodes/drain.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr Duration kSecond = std::chrono::seconds(1);

DrainNode drain_of(const std::string& node, std::optional<Duration> deadline = std::nullopt,
                   const std::string& why = "") {
  return {.node = NodeName(node), .actor = "ann", .why = why, .deadline = deadline};
}
const NodeRecord& node_of(const SmallWorld& world, const std::string& name) {
  return world.ledger.nodes.at(NodeName(name));
}
void heartbeat(SmallWorld& world, const std::string& node) {
  const NodeSeen& seen = world.presence.nodes.at(NodeName(node));
  world.see(HeartbeatHeard{.node = NodeName(node), .connection = seen.connection, .heartbeat = {}});
}

struct DrainTest : testing::Test {
  SmallWorld world;
  void SetUp() override {
    world.node("n0", 1);
    world.node("n1", 1);
  }
  // Time passes while both nodes are heard.
  void pass(Duration time) {
    world.pass(time);
    heartbeat(world, "n0");
    heartbeat(world, "n1");
  }
};

TEST_F(DrainTest, NothingNewIsPlacedThere) {
  world.put(drain_of("n0", {}, "new disk"));
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  EXPECT_EQ(world.job("j1").current()->parts.front().placed.node, NodeName("n1"));
  world.submit("j2", SmallWorld::spec("two", 1, 1));
  EXPECT_EQ(world.job("j2").phase, JobPhase::Queued);
  const auto lines =
      explain(world.ledger, world.presence, world.job("j2"), world.now, world.limits);
  EXPECT_THAT(lines, Contains(HasSubstr("'n0' drains (ann: new disk)")));
  world.put(UndrainNode{.node = NodeName("n0"), .actor = "ann"});
  EXPECT_EQ(world.job("j2").current()->parts.front().placed.node, NodeName("n0"));
}

// A placement that was proposed before the drain was decided is not accepted.
TEST_F(DrainTest, AnEarlierProposalComesToNothing) {
  ASSERT_TRUE(world.put(drain_of("n0")).events.size() == 1);
  ASSERT_TRUE(world.put(drain_of("n1")).events.size() == 1);
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  const NodeRecord& node = node_of(world, "n0");
  const Decision decision = decide(world.ledger, world.presence,
                                   ProposePlacement{.job = JobId("j1"),
                                                    .attempt = AttemptNo(1),
                                                    .nodes = {{.node = node.name,
                                                               .boot_id = node.boot_id,
                                                               .instance = node.instance,
                                                               .address = "n0",
                                                               .devices = {0},
                                                               .rank_count = 1}},
                                                    .master_port = 20'000},
                                   world.now, world.limits);
  EXPECT_TRUE(decision.events.empty());
}

TEST_F(DrainTest, AJobThatOnlyWaitsForADrainedNodeDelaysNobody) {
  world.put(drain_of("n0"));
  v1::JobSpec pinned = SmallWorld::spec("pinned", 1, 1);
  pinned.mutable_resources()->add_hosts("n0");
  world.submit("j1", pinned);
  world.submit("j2", SmallWorld::spec("two", 1, 1));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued) << "it is not refused";
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
}

TEST_F(DrainTest, AtTheDeadlineTheAttemptIsStoppedAndNotCharged) {
  v1::JobSpec spec = SmallWorld::spec("one", 1, 1);
  spec.mutable_recovery()->set_max_restarts(0);
  world.submit("j1", spec);
  world.started("j1", 1, "n0");
  world.put(drain_of("n0", 60 * kSecond, "new disk"));
  pass(59 * kSecond);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
  EXPECT_FALSE(runs_nothing(world.ledger, NodeName("n0")));
  pass(kSecond);
  ASSERT_EQ(world.job("j1").phase, JobPhase::Draining);
  EXPECT_EQ(world.job("j1").current()->drained, NodeName("n0"));
  // Its rank ends badly when it is stopped: that is no cause.
  world.exited("j1", 1, "n0", 0, 1);
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_STOPPED);
  const AttemptRecord& first = world.job("j1").attempts.front();
  ASSERT_TRUE(first.verdict);
  EXPECT_EQ(first.verdict->cls, FailureClass::Operator);
  EXPECT_EQ(first.verdict->reason, "node 'n0' drains (ann: new disk), and its deadline is over");
  EXPECT_FALSE(first.charged);
  ASSERT_EQ(world.job("j1").phase, JobPhase::Launching) << "max_restarts: 0 does not end it";
  EXPECT_EQ(world.job("j1").current()->parts.front().placed.node, NodeName("n1"));
  EXPECT_TRUE(runs_nothing(world.ledger, NodeName("n0")));
}

TEST_F(DrainTest, ACancelDuringTheStopIsACancel) {
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.started("j1", 1, "n0");
  world.put(drain_of("n0", Duration::zero()));
  ASSERT_EQ(world.job("j1").phase, JobPhase::Draining);
  world.put(CancelJob{.job = JobId("j1"), .reason = ""});
  world.exited("j1", 1, "n0", 0, -1, 15);
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_STOPPED);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.job("j1").verdict->reason, "cancelled while it was being stopped");
}

TEST_F(DrainTest, ASecondDrainChangesWhatItNames) {
  world.put(drain_of("n0", {}, "new disk"));
  const WallTime since = world.now.wall;
  EXPECT_TRUE(world.put(drain_of("n0", {}, "new disk")).events.empty());
  EXPECT_TRUE(world.put(drain_of("n0")).events.empty());
  pass(5 * kSecond);
  EXPECT_EQ(world.put(drain_of("n0", 10 * kSecond)).events.size(), 1U);
  const NodeDrained& drain = *node_of(world, "n0").drain;
  EXPECT_EQ(drain.since, since);
  EXPECT_EQ(drain.why, "new disk");
  EXPECT_EQ(drain.deadline, world.now.wall + 10 * kSecond);
  world.put(drain_of("n0", 20 * kSecond, "new fan"));
  EXPECT_EQ(node_of(world, "n0").drain->why, "new fan");
  EXPECT_EQ(node_of(world, "n0").drain->deadline, world.now.wall + 20 * kSecond);
  EXPECT_EQ(world.put(UndrainNode{.node = NodeName("n0"), .actor = "ann"}).events.size(), 1U);
  EXPECT_TRUE(world.put(UndrainNode{.node = NodeName("n0"), .actor = "ann"}).events.empty());
}

TEST_F(DrainTest, ADrainAndLabelsOutliveARegistration) {
  world.put(drain_of("n0"));
  world.put(LabelNode{.node = NodeName("n0"), .actor = "ann", .set = {{"rack", "r1"}}});
  world.node("n0", 1, "b2");
  EXPECT_TRUE(node_of(world, "n0").drain);
  EXPECT_EQ(*label_of(node_of(world, "n0"), "rack"), "r1");
}

TEST_F(DrainTest, UnknownNodes) {
  const std::vector<Input> inputs = {drain_of("n9"),
                                     UndrainNode{.node = NodeName("n9"), .actor = ""},
                                     LabelNode{.node = NodeName("n9"), .actor = ""},
                                     RemoveNode{.node = NodeName("n9"), .actor = ""}};
  for (const Input& input : inputs) {
    const Decision decision = decide(world.ledger, world.presence, input, world.now, world.limits);
    ASSERT_TRUE(decision.refusal);
    EXPECT_EQ(decision.refusal->code, ErrorCode::NotFound);
    EXPECT_THAT(decision.refusal->message, HasSubstr("node 'n9': there is no such node"));
  }
}

TEST_F(DrainTest, LabelsOfOperatorsGoFirstAndAreSelected) {
  v1::Inventory inventory = SmallWorld::inventory(1, "n0");
  (*inventory.mutable_labels())["rack"] = "r1";
  world.put(RegisterNode{.node = NodeName("n0"),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = inventory,
                         .version = "test"});
  v1::JobSpec spec = SmallWorld::spec("one", 1, 1);
  (*spec.mutable_resources()->mutable_select())["rack"] = "r2";
  EXPECT_TRUE(world.submit("j1", spec).refusal) << "no node has rack=r2";
  world.put(LabelNode{.node = NodeName("n0"), .actor = "ann", .set = {{"rack", "r2"}}});
  EXPECT_TRUE(world.put(LabelNode{.node = NodeName("n0"), .actor = "ann", .set = {{"rack", "r2"}}})
                  .events.empty());
  EXPECT_FALSE(world.submit("j1", spec).refusal);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  world.put(LabelNode{.node = NodeName("n0"), .actor = "ann", .remove = {"rack"}});
  EXPECT_EQ(*label_of(node_of(world, "n0"), "rack"), "r1");
  const Decision agents =
      decide(world.ledger, world.presence,
             LabelNode{.node = NodeName("n0"), .actor = "ann", .remove = {"rack"}}, world.now,
             world.limits);
  ASSERT_TRUE(agents.refusal);
  EXPECT_THAT(agents.refusal->message, HasSubstr("it is of the node's agent (--label)"));
}

TEST_F(DrainTest, ANodeIsRemovedWhenNothingCanBeThere) {
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.started("j1", 1, "n0");
  const auto remove = [&] { return world.put(RemoveNode{.node = NodeName("n0"), .actor = "ann"}); };
  EXPECT_THAT(remove().refusal->message, HasSubstr("its agent is connected"));
  world.see(Disconnected{.node = NodeName("n0"),
                         .connection = world.presence.nodes.at(NodeName("n0")).connection});
  EXPECT_THAT(remove().refusal->message, HasSubstr("attempt 1 of job 'one' may still be there"));
  world.pass(10 * kSecond);
  heartbeat(world, "n1");
  ASSERT_FALSE(world.put(DeclareNodeDead{.node = NodeName("n0"), .reason = ""}).refusal);
  EXPECT_EQ(world.job("j1").current()->parts.front().placed.node, NodeName("n1"));
  ASSERT_FALSE(remove().refusal);
  EXPECT_FALSE(world.ledger.nodes.contains(NodeName("n0")));
  EXPECT_TRUE(world.ledger.indexes.dead_nodes.empty());
  const NodePart& part = world.job("j1").attempts.front().parts.front();
  EXPECT_TRUE(part.closed()) << "nobody will report it any more";
  EXPECT_FALSE(world.ledger.indexes.device_holders.contains(NodeName("n0")));
  // The name is free.
  world.node("n0", 1, "b9", "i9");
  EXPECT_TRUE(world.ledger.nodes.contains(NodeName("n0")));
}

TEST_F(DrainTest, ADeadNodeStaysAsLongAsAnAttemptThereHasNotEnded) {
  world.submit("j1", SmallWorld::spec("one", 2, 1));
  world.started("j1", 1, "n0");
  world.started("j1", 1, "n1");
  world.see(Disconnected{.node = NodeName("n0"),
                         .connection = world.presence.nodes.at(NodeName("n0")).connection});
  world.pass(10 * kSecond);
  heartbeat(world, "n1");
  ASSERT_FALSE(world.put(DeclareNodeDead{.node = NodeName("n0"), .reason = ""}).refusal);
  ASSERT_EQ(world.job("j1").phase, JobPhase::Draining);
  const Decision kept = world.put(RemoveNode{.node = NodeName("n0"), .actor = "ann"});
  ASSERT_TRUE(kept.refusal);
  EXPECT_EQ(kept.refusal->code, ErrorCode::Conflict);
  EXPECT_THAT(kept.refusal->message, HasSubstr("attempt 1 of job 'one' has not ended yet"));
}

}  // namespace
}  // namespace muster::core
