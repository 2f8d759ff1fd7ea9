// A node gets another name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/core/access/revoked.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

struct RenameTest : testing::Test {
  SmallWorld world;
  void SetUp() override { world.node("n0", 1); }
  Decision rename(const std::string& to, const std::string& node = "n0") {
    return world.put(RenameNode{.node = NodeName(node), .new_name = NodeName(to), .actor = "ann"});
  }
  void leave(const std::string& node = "n0") {
    world.see(Disconnected{.node = NodeName(node),
                           .connection = world.presence.nodes.at(NodeName(node)).connection});
  }
};

TEST_F(RenameTest, DrainAndLabelsGoAlong) {
  world.put(DrainNode{.node = NodeName("n0"), .actor = "ann", .why = "moves"});
  world.put(LabelNode{.node = NodeName("n0"), .actor = "ann", .set = {{"rack", "r1"}}});
  leave();
  const Decision decision = rename("m0");
  ASSERT_FALSE(decision.refusal);
  EXPECT_FALSE(world.ledger.nodes.contains(NodeName("n0")));
  const NodeRecord& node = world.ledger.nodes.at(NodeName("m0"));
  EXPECT_EQ(node.name, NodeName("m0"));
  EXPECT_EQ(node.drain->node, NodeName("m0"));
  EXPECT_EQ(node.drain->why, "moves");
  EXPECT_EQ(*label_of(node, "rack"), "r1");
  EXPECT_TRUE(node.instance.empty());
  world.node("m0", 1);
  EXPECT_TRUE(world.ledger.nodes.at(NodeName("m0")).drain)
      << "a registration changes nothing of it";
  EXPECT_EQ(world.ledger.nodes.at(NodeName("m0")).instance, InstanceId("i1"));
}

TEST_F(RenameTest, CertificatesOfTheOldNameCountNoMore) {
  leave();
  const Decision decision = rename("m0");
  const auto* revoked = std::get_if<CertificateRevoked>(&decision.events.front());
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->subject, (Subject{.role = SubjectRole::Node, .name = "n0"}));
  EXPECT_EQ(revoked->before, world.now.wall);
  EXPECT_EQ(revoked->why, "the node was renamed to 'm0'");
  EXPECT_EQ(revoked->actor, "ann");
}

// Regression: the certificate of a node that was removed counted for the next one of its name.
TEST_F(RenameTest, CertificatesOfANodeThatHadTheNewNameCountNoMore) {
  const Subject m0{.role = SubjectRole::Node, .name = "m0"};
  const auto issue = [&](const std::string& key) {
    return world.put(
        IssueCertificate{.subject = m0,
                         .certificate = {.serial = key,
                                         .key = key,
                                         .not_before = world.now.wall,
                                         .not_after = world.now.wall + std::chrono::hours(24)},
                         .actor = "owner"});
  };
  const auto counts = [&](const std::string& key) {
    return !Revoked(world.ledger.access).refuse(m0, key, world.now.wall);
  };
  world.node("m0", 1);
  ASSERT_FALSE(issue("a").refusal);
  ASSERT_FALSE(world
                   .put(CreateToken{.token = {.token = "t",
                                              .secret_sha256 = std::string(64, '5'),
                                              .nodes = "m0",
                                              .uses = 1,
                                              .ends_at = world.now.wall + std::chrono::hours(24),
                                              .may_replace = true,
                                              .actor = "owner"}})
                   .refusal);
  leave("m0");
  ASSERT_FALSE(world.put(RemoveNode{.node = NodeName("m0"), .actor = "ann"}).refusal);
  EXPECT_TRUE(counts("a")) << "as the documentation of `muster node rm` says";

  leave();
  ASSERT_FALSE(rename("m0").refusal);
  EXPECT_FALSE(counts("a"));
  EXPECT_TRUE(world.ledger.access.tokens.at("t").revoked_at);
  EXPECT_FALSE(counts("of an older release")) << "the ledger has no record of it";
  const auto why = Revoked(world.ledger.access).refuse(m0, "a", world.now.wall);
  EXPECT_THAT(why->message, HasSubstr("of node 'm0' was revoked: node 'n0' was renamed to 'm0'"));
  ASSERT_TRUE(issue("a").refusal);
  ASSERT_FALSE(issue("b").refusal);
  EXPECT_TRUE(counts("b")) << "the node gets it after the rename";
}

TEST_F(RenameTest, WhenItIsRefused) {
  EXPECT_EQ(rename("m0", "n9").refusal->code, ErrorCode::NotFound);
  EXPECT_THAT(rename("m0").refusal->message,
              HasSubstr("renaming node 'n0': its agent is connected"));
  leave();
  EXPECT_EQ(rename("-m").refusal->code, ErrorCode::InvalidArgument);
  EXPECT_EQ(rename("").refusal->code, ErrorCode::InvalidArgument);
  world.node("m0", 1);
  const Decision taken = rename("m0");
  EXPECT_EQ(taken.refusal->code, ErrorCode::Conflict);
  EXPECT_THAT(taken.refusal->message, HasSubstr("there is a node 'm0'"));
  const Decision same = rename("n0");
  EXPECT_EQ(same.refusal->code, ErrorCode::InvalidArgument);
  EXPECT_THAT(same.refusal->message, HasSubstr("it has this name already"));
}

TEST_F(RenameTest, NothingOfAJobMayBeThere) {
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.started("j1", 1, "n0");
  leave();
  const Decision there = rename("m0");
  EXPECT_EQ(there.refusal->code, ErrorCode::Conflict);
  EXPECT_THAT(there.refusal->message, HasSubstr("attempt 1 of job 'one' may still be there"));
  // The node is back: the job ends, and its logs will not come.
  v1::PresentAttempt present;
  present.set_job_id("j1");
  present.set_attempt(1);
  world.node("n0", 1, "b1", "i1", {present});
  world.exited("j1", 1, "n0", 0, 0);
  world.swept("j1", 1, "n0");
  leave();
  ASSERT_FALSE(rename("m0").refusal);
  const NodePart& part = world.job("j1").attempts.front().parts.front();
  EXPECT_EQ(part.placed.node, NodeName("n0")) << "what has happened keeps its name";
  EXPECT_TRUE(part.closed());
}

TEST_F(RenameTest, ItsOwnNameIsNoNewName) {
  leave();
  const Decision same = rename("n0");
  ASSERT_TRUE(same.refusal);
  EXPECT_EQ(same.refusal->message, "renaming node 'n0': it has this name already");
}

TEST_F(RenameTest, ADeadNodeIsNotDeadUnderItsNewName) {
  leave();
  world.pass(std::chrono::seconds(10));
  ASSERT_FALSE(world.put(DeclareNodeDead{.node = NodeName("n0"), .reason = ""}).refusal);
  ASSERT_FALSE(rename("m0").refusal);
  EXPECT_FALSE(world.ledger.nodes.at(NodeName("m0")).dead);
  EXPECT_TRUE(world.ledger.indexes.dead_nodes.empty());
}

}  // namespace
}  // namespace muster::core
