#include <gtest/gtest.h>

#include "controller/links/hub.h"

namespace muster::controller {
namespace {

core::Ledger ledger() {
  core::Ledger made;
  made.cluster = ClusterId("c");
  made.epoch = Epoch(3);
  return made;
}
v1::Hello hello() {
  v1::Hello made;
  made.set_protocol_min(1);
  made.set_protocol_max(2);
  made.set_node("n1");
  made.set_instance("i");
  made.set_boot_id("b");
  return made;
}
grpc::StatusCode judged(const v1::Hello& one, bool accept_loss = false) { return judge_hello(one, ledger(), JournalIndex(10), accept_loss).error_code(); }

TEST(Hello, AnAgentThatFitsIsTaken) {
  v1::Hello one = hello();
  EXPECT_EQ(judged(one), grpc::StatusCode::OK);
  one.set_cluster_id("c");
  one.set_highest_epoch(3);
  one.set_acked_index(10);
  EXPECT_EQ(judged(one), grpc::StatusCode::OK);
}

TEST(Hello, AJournalBehindItsAgentsIsRefusedUnlessTheLossIsAccepted) {
  v1::Hello one = hello();
  one.set_cluster_id("c");
  one.set_acked_index(11);
  EXPECT_EQ(judged(one), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(journal_behind(one, ledger(), JournalIndex(10)));
  EXPECT_EQ(judged(one, true), grpc::StatusCode::OK);
  // Of another cluster it proves nothing.
  one.set_cluster_id("d");
  EXPECT_FALSE(journal_behind(one, ledger(), JournalIndex(10)));
  EXPECT_EQ(judged(one, true), grpc::StatusCode::PERMISSION_DENIED) << "a code of its own: the agent must know this refusal from the others";
}

TEST(Hello, ALowerEpochThanTheAgentHasSeenIsRefused) {
  v1::Hello one = hello();
  one.set_highest_epoch(4);
  EXPECT_EQ(judged(one), grpc::StatusCode::FAILED_PRECONDITION);
}

struct TouchedNodes : testing::Test {
  std::vector<journal::Row> row(core::EventBody body) {
    const journal::Row made{.index = JournalIndex(++index), .event = {.at = WallTime(), .body = std::move(body)}};
    core::apply(folded, made.index, made.event);
    return std::vector{made};
  }

  core::Ledger folded;
  std::uint64_t index = 0;
  const JobId job{"0000000000001"};
  const std::vector<core::PlacedNode> nodes = {{.node = NodeName("a"), .address = "x", .devices = {0}, .first_rank = RankNo(0), .rank_count = 1},
                                               {.node = NodeName("b"), .address = "y", .devices = {0}, .first_rank = RankNo(1), .rank_count = 1}};
  const std::vector<NodeName> both = {NodeName("a"), NodeName("b")};
};

// Facts of one node concern that node; everything else about a job concerns all its nodes.
TEST_F(TouchedNodes, AreThoseWhoseOrdersMayChange) {
  EXPECT_TRUE(touched_nodes(row(core::JobSubmitted{.job = job}), folded).empty());
  EXPECT_EQ(touched_nodes(row(core::AttemptPlaced{.job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000}), folded), both);
  EXPECT_EQ(touched_nodes(row(core::NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName("b")}), folded), std::vector{NodeName("b")});
  for (const char* name : {"a", "b"}) row(core::NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName(name)});
  EXPECT_EQ(touched_nodes(row(core::RankExited{.job = job, .attempt = AttemptNo(1), .node = NodeName("b"), .rank = RankNo(1)}), folded),
            std::vector{NodeName("b")});
  EXPECT_EQ(touched_nodes(row(core::RankExited{.job = job, .attempt = AttemptNo(1), .node = NodeName("a"), .rank = RankNo(0)}), folded), both)
      << "the last rank's end: what is beside the ranks may end as well";
}

TEST_F(TouchedNodes, AreAllOfAJobThatBreaks) {
  row(core::JobSubmitted{.job = job});
  row(core::AttemptPlaced{.job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000});
  EXPECT_EQ(touched_nodes(row(core::AttemptBroke{.job = job, .attempt = AttemptNo(1)}), folded), both);
}

}  // namespace
}  // namespace muster::controller
