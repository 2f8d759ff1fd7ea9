#include <gtest/gtest.h>

#include "controller/core/journal_end/lost_end.h"
#include "controller/links/hub.h"

namespace muster::controller {
namespace {

core::Ledger ledger() {
  core::Ledger made;
  made.cluster = ClusterId("c");
  made.epoch = Epoch(3);
  made.nodes[NodeName("n1")] = {.name = NodeName("n1"), .instance = InstanceId("i")};
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
// The journal had row 8 when epoch 3 began, and has row 10 now.
Judged judged(const v1::Hello& one, bool welcomed = false) {
  return judge_hello(one, ledger(), JournalIndex(8), JournalIndex(10), welcomed);
}

TEST(Hello, AnAgentThatFitsIsTaken) {
  v1::Hello one = hello();
  EXPECT_EQ(judged(one).status.error_code(), grpc::StatusCode::OK);
  one.set_cluster_id("c");
  EXPECT_EQ(judged(one).status.error_code(), grpc::StatusCode::OK);
}

// An older copy of the whole directory is sound; only its agents know more. What the controller has
// written since hides nothing.
TEST(Hello, WhoKnowsMoreThanTheJournalHasGivesItAway) {
  struct Case {
    std::uint64_t epoch, acked;
    bool welcomed, behind;
  };
  constexpr Case kCases[] = {
      {.epoch = 2, .acked = 8, .welcomed = false, .behind = false},
      // row 9 is of this epoch; the agent was sent another row 9
      {.epoch = 2, .acked = 9, .welcomed = false, .behind = true},
      {.epoch = 2, .acked = 11, .welcomed = false, .behind = true},
      // It was connected a moment ago.
      {.epoch = 3, .acked = 10, .welcomed = true, .behind = false},
      {.epoch = 3, .acked = 11, .welcomed = true, .behind = true},
      {.epoch = 3, .acked = 8, .welcomed = false, .behind = true},  // there was another epoch 3
      {.epoch = 4, .acked = 0, .welcomed = false, .behind = true},
      {.epoch = 4, .acked = 0, .welcomed = true, .behind = true},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE("epoch " + std::to_string(one.epoch) + ", row " + std::to_string(one.acked) +
                 (one.welcomed ? ", welcomed" : ""));
    v1::Hello says = hello();
    says.set_cluster_id("c");
    says.set_highest_epoch(one.epoch);
    says.set_acked_index(one.acked);
    const Judged found = judged(says, one.welcomed);
    EXPECT_EQ(found.status.error_code(),
              one.behind ? grpc::StatusCode::FAILED_PRECONDITION : grpc::StatusCode::OK);
    EXPECT_EQ(!found.behind.empty(), one.behind);
    if (!one.behind) continue;
    EXPECT_NE(found.status.error_message().find("restart the controller once with --accept-loss"),
              std::string::npos)
        << found.status.error_message();
    EXPECT_NE(found.behind.find("up to journal row " + std::to_string(one.acked) +
                                " and controller epoch " + std::to_string(one.epoch)),
              std::string::npos)
        << found.behind;
    // From an agent of another cluster, or of none, it proves nothing.
    says.set_cluster_id("d");
    const Judged stranger = judged(says, one.welcomed);
    EXPECT_EQ(stranger.status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << "a code of its own: the agent must know this refusal from the others";
    EXPECT_EQ(stranger.behind, "");
  }
}

// Regression: one Hello of anybody with the token ended the controller, at every start.
TEST(Hello, WhoIsNotKnownHereEndsNothing) {
  v1::Hello says = hello();
  says.set_cluster_id("c");
  says.set_highest_epoch(4);
  ASSERT_NE(judged(says).behind, "");
  for (const std::string_view stranger : {"name", "instance"}) {
    v1::Hello other = says;
    if (stranger == "name") other.set_node("n2");
    if (stranger == "instance") other.set_instance("j");
    const Judged found = judged(other);
    EXPECT_EQ(found.behind, "") << stranger;
    EXPECT_EQ(found.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    for (const char* text :
         {"knows no such agent", "--accept-loss", "a new, empty state directory"})
      EXPECT_NE(found.status.error_message().find(text), std::string::npos)
          << found.status.error_message();
  }
}

// No accepted loss reaches so far: otherwise the agent would end every start.
TEST(Hello, WhatNoControllerCanHaveReachedIsNotBelieved) {
  const auto says = [](std::uint64_t epoch, std::uint64_t acked) {
    v1::Hello one = hello();
    one.set_cluster_id("c");
    one.set_highest_epoch(epoch);
    one.set_acked_index(acked);
    return judged(one);
  };
  for (const std::uint64_t far :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, 3 + core::kReachBeyondMost + 1'000}) {
    for (const Judged& found : {says(far, 0), says(2, far)}) {
      EXPECT_EQ(found.behind, "") << far;
      EXPECT_EQ(found.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_NE(found.status.error_message().find("which no controller of this cluster"),
                std::string::npos)
          << found.status.error_message();
    }
  }
  EXPECT_NE(says(3 + core::kReachBeyondMost, 0).behind, "");
}

// It is kept for ever, and every answer that shows the node contains it.
TEST(Hello, AnInventoryHasBounds) {
  const auto refused = [](auto change) {
    v1::Hello one = hello();
    change(one);
    const grpc::Status status = judged(one).status;
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  const auto devices = [](int count) {
    return [count](v1::Hello& one) {
      for (int i = 0; i < count; ++i)
        one.mutable_inventory()->add_devices()->set_id(static_cast<std::uint32_t>(i));
    };
  };
  EXPECT_EQ(refused(devices(1'024)), "");
  EXPECT_EQ(refused(devices(1'025)),
            "connecting node 'n1': its inventory has 1025 devices, at most 1024 are taken");
  EXPECT_NE(refused([](v1::Hello& one) {
              one.mutable_inventory()->set_hostname(std::string(300'000, 'h'));
            }).find("bytes, at most 262144 are taken"),
            std::string::npos);
  EXPECT_NE(refused([](v1::Hello& one) {
              for (int i = 0; i < 257; ++i)
                (*one.mutable_inventory()->mutable_labels())[std::to_string(i)] = "";
            }).find("257 labels"),
            std::string::npos);
  EXPECT_NE(refused([](v1::Hello& one) {
              one.set_boot_id(std::string(257, 'b'));
            }).find("of 257 bytes, at most 256"),
            std::string::npos);
}

TEST(Hello, ALowerEpochThanAnAgentWithoutAClusterHasSeenIsRefused) {
  v1::Hello one = hello();
  one.set_highest_epoch(4);
  EXPECT_EQ(judged(one).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(judged(one).behind, "");
}

struct TouchedNodes : testing::Test {
  std::vector<journal::Row> row(core::EventBody body) {
    const journal::Row made{.index = JournalIndex(++index),
                            .event = {.at = WallTime(), .body = std::move(body)}};
    core::apply(folded, made.index, made.event);
    return std::vector{made};
  }

  core::Ledger folded;
  std::uint64_t index = 0;
  const JobId job{"0000000000001"};
  const std::vector<core::PlacedNode> nodes = {{.node = NodeName("a"),
                                                .address = "x",
                                                .devices = {0},
                                                .first_rank = RankNo(0),
                                                .rank_count = 1},
                                               {.node = NodeName("b"),
                                                .address = "y",
                                                .devices = {0},
                                                .first_rank = RankNo(1),
                                                .rank_count = 1}};
  const std::vector<NodeName> both = {NodeName("a"), NodeName("b")};
};

// Facts of one node concern only that node; everything else about a job concerns all its nodes.
TEST_F(TouchedNodes, AreThoseWhoseOrdersMayChange) {
  EXPECT_TRUE(touched_nodes(row(core::JobSubmitted{.job = job}), folded).empty());
  EXPECT_EQ(touched_nodes(
                row(core::AttemptPlaced{
                    .job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000}),
                folded),
            both);
  EXPECT_EQ(touched_nodes(
                row(core::NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName("b")}),
                folded),
            std::vector{NodeName("b")});
  for (const char* name : {"a", "b"})
    row(core::NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName(name)});
  EXPECT_EQ(touched_nodes(
                row(core::RankExited{
                    .job = job, .attempt = AttemptNo(1), .node = NodeName("b"), .rank = RankNo(1)}),
                folded),
            std::vector{NodeName("b")});
  EXPECT_EQ(touched_nodes(
                row(core::RankExited{
                    .job = job, .attempt = AttemptNo(1), .node = NodeName("a"), .rank = RankNo(0)}),
                folded),
            both)
      << "the last rank's end: what is beside the ranks may end as well";
}

TEST_F(TouchedNodes, AreAllOfAJobThatBreaks) {
  row(core::JobSubmitted{.job = job});
  row(core::AttemptPlaced{
      .job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000});
  EXPECT_EQ(touched_nodes(row(core::AttemptBroke{.job = job, .attempt = AttemptNo(1)}), folded),
            both);
}

}  // namespace
}  // namespace muster::controller
