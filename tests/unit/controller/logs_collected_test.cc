// A node with a certificate sends logs of its own ranks only. Regression: a node could write, and
// end, the log of every rank of every job.
#include "controller/links/logs_collected.h"

#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

const InstanceId i1("i1");

TEST_F(HandNodeTest, ALogBelongsToTheNodeWhereItsRankIsPlaced) {
  LogsCollected& logs = *controller_->collected;
  const NodeName n1("n1"), n2("n2");
  const JobId waiting(submitted("waiting"));
  const auto log = [](const JobId& job, std::uint32_t attempt, std::uint32_t rank) {
    return logs::LogKey{job, AttemptNo(attempt), RankNo(rank)};
  };
  EXPECT_TRUE(logs.known(waiting));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 0), n1, i1)) << "it is not placed";
  node();
  EXPECT_EQ(job(waiting.str()).attempts_size(), 1) << "it is placed now";
  EXPECT_TRUE(logs.is_of(log(waiting, 1, 0), n1, i1));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 0), n2, i1));
  EXPECT_FALSE(logs.is_of(log(waiting, 1, 1), n1, i1)) << "it has one rank";
  EXPECT_FALSE(logs.is_of(log(waiting, 2, 0), n1, i1)) << "an attempt to come";
  EXPECT_FALSE(logs.is_of(log(JobId("none"), 1, 0), n1, i1));
  EXPECT_TRUE(logs.is_others(log(waiting, 1, 0), n2));
  EXPECT_FALSE(logs.is_others(log(waiting, 1, 1), n1)) << "it has a part of the attempt";
  EXPECT_FALSE(logs.is_others(log(waiting, 2, 0), n2)) << "nobody has it";
  EXPECT_FALSE(logs.is_others(log(JobId("none"), 1, 0), n2));
  logs::LogKey setup = log(waiting, 1, 0);
  setup.auxiliary = "setup";
  setup.node = n1;
  EXPECT_TRUE(logs.is_of(setup, n1, i1));
  setup.node = n2;
  EXPECT_FALSE(logs.is_of(setup, n2, i1)) << "no part of it is there";
}

// Regression: a machine that had replaced another one under the name 'n1' could write, and end, the
// logs of the other's ranks.
TEST_F(HandNodeTest, AMachineThatReplacedAnotherSendsNoLogsOfIt) {
  node();
  const JobId id(submitted("train"));
  EXPECT_EQ(job(id.str()).attempts_size(), 1);
  LogsCollected& logs = *controller_->collected;
  const NodeName n1("n1");
  const logs::LogKey rank{id, AttemptNo(1), RankNo(0)}, setup{id, AttemptNo(1), {}, "setup", n1};
  const InstanceId i2("i2");
  EXPECT_FALSE(logs.is_of(rank, n1, i2));
  EXPECT_FALSE(logs.is_of(setup, n1, i2));
  EXPECT_TRUE(logs.is_of(rank, n1, i1));
  EXPECT_TRUE(logs.is_of(setup, n1, i1));
}

// Regression: every node could write logs of archived jobs, of ranks and attempts that never were.
TEST_F(HandNodeTest, NobodySendsLogsOfAJobInTheArchive) {
  node();
  const JobId id(submitted("over"));
  LogsCollected& logs = *controller_->collected;
  const logs::LogKey rank{id, AttemptNo(1), RankNo(0)};
  logs::LogKey setup = rank;
  setup.auxiliary = "setup";
  setup.node = NodeName("n1");
  succeed(id.str());
  EXPECT_TRUE(logs.is_of(rank, NodeName("n1"), i1)) << "it has ended, and may have more to send";
  EXPECT_TRUE(logs.is_of(setup, NodeName("n1"), i1));
  put(core::ProposeArchive{.job = id});
  EXPECT_EQ(job(id.str()).phase(), v1::JOB_PHASE_SUCCEEDED);  // from the archive
  EXPECT_TRUE(logs.known(id)) << "its logs are kept";
  for (const char* name : {"n1", "n2"}) {
    EXPECT_FALSE(logs.is_of(rank, NodeName(name), i1)) << name;
    EXPECT_FALSE(logs.is_of({id, AttemptNo(99), RankNo(7)}, NodeName(name), i1)) << name;
    setup.node = NodeName(name);
    EXPECT_FALSE(logs.is_of(setup, NodeName(name), i1)) << name;
  }
}

// Regression: only logs that were open at a time had a bound. So a node could end one and begin
// another without end, each of them two files.
TEST_F(HandNodeTest, ANodeHasABoundOfLogsThatAreNoRanks) {
  node();
  const JobId id(submitted("many"));
  EXPECT_EQ(job(id.str()).attempts_size(), 1);
  LogsCollected& logs = *controller_->collected;
  const NodeName n1("n1");
  const auto log = [&](int number) {
    return logs::LogKey{id, AttemptNo(1), RankNo(0), "c" + std::to_string(number), n1};
  };
  for (int i = 0; i < 80; ++i) EXPECT_TRUE(logs.is_of(log(i), n1, i1)) << i;
  EXPECT_FALSE(logs.is_of(log(80), n1, i1));
  EXPECT_TRUE(logs.is_of(log(3), n1, i1)) << "it is one of them";
  EXPECT_TRUE(logs.is_of({id, AttemptNo(1), RankNo(0)}, n1, i1)) << "a rank's does not count";
}

}  // namespace
}  // namespace muster::controller
