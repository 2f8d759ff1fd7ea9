// Which nodes' orders may change because of rows.
#include <gtest/gtest.h>

#include "controller/core/peers.h"

namespace muster::core {
namespace {

struct TouchedNodes : testing::Test {
  std::vector<Row> row(EventBody body) {
    const Row made{.index = JournalIndex(++index),
                   .event = {.at = WallTime(), .body = std::move(body)}};
    apply(folded, made.index, made.event);
    return std::vector{made};
  }

  Ledger folded;
  std::uint64_t index = 0;
  const JobId job{"0000000000001"};
  const std::vector<PlacedNode> nodes = {{.node = NodeName("a"),
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
  EXPECT_TRUE(touched_nodes(row(JobSubmitted{.job = job}), folded).empty());
  EXPECT_EQ(touched_nodes(
                row(AttemptPlaced{
                    .job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000}),
                folded),
            both);
  EXPECT_EQ(
      touched_nodes(row(NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName("b")}),
                    folded),
      std::vector{NodeName("b")});
  for (const char* name : {"a", "b"})
    row(NodeStarted{.job = job, .attempt = AttemptNo(1), .node = NodeName(name)});
  EXPECT_EQ(touched_nodes(
                row(RankExited{
                    .job = job, .attempt = AttemptNo(1), .node = NodeName("b"), .rank = RankNo(1)}),
                folded),
            std::vector{NodeName("b")});
  EXPECT_EQ(touched_nodes(
                row(RankExited{
                    .job = job, .attempt = AttemptNo(1), .node = NodeName("a"), .rank = RankNo(0)}),
                folded),
            both)
      << "the last rank's end: what is beside the ranks may end as well";
}

TEST_F(TouchedNodes, AreAllOfAJobThatBreaks) {
  row(JobSubmitted{.job = job});
  row(AttemptPlaced{.job = job, .attempt = AttemptNo(1), .nodes = nodes, .master_port = 20'000});
  EXPECT_EQ(touched_nodes(row(AttemptBroke{.job = job, .attempt = AttemptNo(1)}), folded), both);
}

}  // namespace
}  // namespace muster::core
