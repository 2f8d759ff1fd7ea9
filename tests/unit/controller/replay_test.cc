// A sound record that makes no sense sets its one job aside; the rest starts, and the job's devices stay reserved.
#include "controller/shell/replay.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

const JobId kGood("0000000000001"), kBad("0000000000002");
const NodeName kNode("n1");

class ReplayTest : public testing::Test {
 protected:
  void row(core::EventBody body) {
    replay_.row({.index = JournalIndex(++index_), .event = {.at = WallTime(std::chrono::seconds(index_)), .body = std::move(body)}});
  }
  void submit(const JobId& job, const std::string& name) {
    v1::JobSpec spec;
    spec.set_name(name);
    row(core::JobSubmitted{.job = job, .request_id = RequestId("r" + name), .spec = spec, .spec_hash = "h"});
  }
  void place(const JobId& job, std::uint32_t attempt, std::uint32_t device) {
    row(core::AttemptPlaced{.job = job,
                            .attempt = AttemptNo(attempt),
                            .nodes = {{.node = kNode, .address = "127.0.0.1", .devices = {device}, .first_rank = RankNo(0), .rank_count = 1}},
                            .master_port = static_cast<std::uint16_t>(20'000 + device)});
  }
  Replay replay_;
  std::uint64_t index_ = 0;
};

TEST_F(ReplayTest, SenseIsFolded) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  row(core::NodeStarted{.job = kGood, .attempt = AttemptNo(1), .node = kNode, .pids = {7}});
  EXPECT_TRUE(replay_.set_aside().empty());
  EXPECT_EQ(replay_.ledger().jobs.at(kGood).phase, core::JobPhase::Running);
}

TEST_F(ReplayTest, NonsenseSetsItsOneJobAside) {
  submit(kGood, "good");
  submit(kBad, "bad");
  place(kBad, 1, 0);
  place(kBad, 3, 1);                                                   // attempt 2 never was
  row(core::JobEnded{.job = kBad, .outcome = core::Outcome::Failed});  // of a job set aside: not looked at
  place(kGood, 1, 2);
  core::Ledger& ledger = replay_.ledger();
  ASSERT_TRUE(replay_.set_aside().contains(kBad));
  EXPECT_NE(replay_.set_aside().at(kBad).find("row 4"), std::string::npos) << replay_.set_aside().at(kBad);
  EXPECT_FALSE(ledger.jobs.contains(kBad));
  EXPECT_FALSE(ledger.live_names.contains("bad"));
  EXPECT_EQ(ledger.jobs.at(kGood).phase, core::JobPhase::Launching);
  // Its process may still run there.
  EXPECT_TRUE(ledger.device_holders.at(kNode).contains(0));
  EXPECT_FALSE(ledger.node_parts.at(kNode).unswept.contains({kBad, AttemptNo(1)}));
}

// Each of these would break one of apply's assertions.
TEST_F(ReplayTest, EveryKindOfNonsenseIsMet) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  const core::Ledger& ledger = replay_.ledger();
  const AttemptNo first(1), second(2);
  const std::vector<core::EventBody> bodies = {
      core::CancelRequested{.job = kBad},
      core::JobSubmitted{.job = kGood},
      core::AttemptPlaced{.job = kGood, .attempt = second},
      core::NodeStarted{.job = kGood, .attempt = second, .node = kNode},
      core::NodeStarted{.job = kGood, .attempt = first, .node = NodeName("other")},
      core::RankExited{.job = kGood, .attempt = first, .node = kNode, .rank = RankNo(1)},
      core::AttemptBroke{.job = kGood, .attempt = second},
      core::AttemptEnded{.job = kGood, .attempt = first},
      core::AttemptCompleted{.job = kGood, .attempt = second},
      core::JobEnded{.job = kGood, .outcome = core::Outcome::Succeeded},
      core::LogsCollected{.job = kGood, .attempt = second, .node = kNode},
  };
  for (const core::EventBody& body : bodies) EXPECT_TRUE(nonsense(ledger, body)) << body.index();
  EXPECT_FALSE(nonsense(ledger, core::RankExited{.job = kGood, .attempt = first, .node = kNode, .rank = RankNo(0)}));
  EXPECT_FALSE(nonsense(ledger, core::AttemptBroke{.job = kGood, .attempt = first}));
}

TEST_F(ReplayTest, ADeviceHeldByAnotherAttemptIsNonsense) {
  submit(kGood, "good");
  submit(kBad, "bad");
  place(kGood, 1, 0);
  place(kBad, 1, 0);
  EXPECT_TRUE(replay_.set_aside().contains(kBad));
  EXPECT_EQ(replay_.ledger().device_holders.at(kNode).at(0).first, kGood);
}

}  // namespace
}  // namespace muster::controller
