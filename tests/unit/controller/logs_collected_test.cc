// A node with a certificate sends logs of its own ranks only. Regression: a node could write, and
// end, the log of every rank of every job.
#include "controller/links/logs_collected.h"

#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

TEST_F(HandNodeTest, ALogBelongsToTheNodeWhereItsRankIsPlaced) {
  const LogsCollected& logs = *controller_->collected;
  const NodeName n1("n1"), n2("n2");
  const JobId waiting(submitted("waiting"));
  const auto log = [](const JobId& job, std::uint32_t attempt, std::uint32_t rank) {
    return logs::LogKey{job, AttemptNo(attempt), RankNo(rank)};
  };
  EXPECT_TRUE(logs.known(waiting));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 0), n1)) << "it is not placed";
  node();
  EXPECT_EQ(job(waiting.str()).attempts_size(), 1) << "it is placed now";
  EXPECT_TRUE(logs.is_of(log(waiting, 1, 0), n1));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 0), n2));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 1), n1)) << "it has one rank";
  EXPECT_FALSE(logs.is_of(log(waiting, 2, 0), n1)) << "an attempt to come";
  EXPECT_FALSE(logs.is_of(log(JobId("none"), 1, 0), n1));
  logs::LogKey setup = log(waiting, 1, 0);
  setup.auxiliary = "setup";
  setup.node = n1;
  EXPECT_TRUE(logs.is_of(setup, n1));
  setup.node = n2;
  EXPECT_FALSE(logs.is_of(setup, n2)) << "no part of it is there";
}

}  // namespace
}  // namespace muster::controller
