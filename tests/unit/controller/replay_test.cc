// A sound record that makes no sense is left out, and makes its one job unreadable; everything else
// starts. Records of that job that make sense stay.
#include "controller/shell/replay.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

const JobId kGood("0000000000001"), kBad("0000000000002");
const NodeName kNode("n1");

class ReplayTest : public testing::Test {
 protected:
  void row(core::EventBody body) {
    replay_.row({.index = JournalIndex(++index_),
                 .event = {.at = WallTime(std::chrono::seconds(index_)), .body = std::move(body)}});
  }
  void submit(const JobId& job, const std::string& name) {
    v1::JobSpec spec;
    spec.set_name(name);
    row(core::JobSubmitted{
        .job = job, .request_id = RequestId("r" + name), .spec = spec, .spec_hash = "h"});
  }
  void place(const JobId& job, std::uint32_t attempt, std::uint32_t device) {
    row(core::AttemptPlaced{.job = job,
                            .attempt = AttemptNo(attempt),
                            .nodes = {{.node = kNode,
                                       .address = "127.0.0.1",
                                       .devices = {device},
                                       .first_rank = RankNo(0),
                                       .rank_count = 1}},
                            .master_port = static_cast<std::uint16_t>(20'000 + device)});
  }
  Replay replay_;
  std::uint64_t index_ = 0;
};

TEST_F(ReplayTest, SenseIsFolded) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  row(core::NodeStarted{.job = kGood, .attempt = AttemptNo(1), .node = kNode, .pids = {7}});
  EXPECT_TRUE(replay_.unreadable().empty());
  EXPECT_EQ(replay_.ledger().jobs.at(kGood).phase, core::JobPhase::Running);
}

TEST_F(ReplayTest, NonsenseMakesItsOneJobUnreadable) {
  submit(kGood, "good");
  submit(kBad, "bad");
  place(kBad, 1, 0);
  place(kBad, 3, 1);  // attempt 2 never existed
  // nonsense, too, but only the first nonsense is reported
  row(core::JobEnded{.job = kBad, .outcome = core::Outcome::Failed});
  place(kGood, 1, 2);
  core::Ledger& ledger = replay_.ledger();
  ASSERT_TRUE(replay_.unreadable().contains(kBad));
  EXPECT_NE(replay_.unreadable().at(kBad).find("row 4"), std::string::npos)
      << replay_.unreadable().at(kBad);
  EXPECT_EQ(ledger.jobs.at(kGood).phase, core::JobPhase::Launching);
  // Its process may still run there. So it keeps its device, its name and its orders, and can be
  // stopped.
  EXPECT_EQ(ledger.jobs.at(kBad).phase, core::JobPhase::Launching);
  EXPECT_TRUE(ledger.indexes.live_names.contains("bad"));
  EXPECT_TRUE(ledger.indexes.device_holders.at(kNode).contains(0));
  EXPECT_FALSE(ledger.indexes.device_holders.at(kNode).contains(1))
      << "nobody has acted on a placement that no controller can fold";
  EXPECT_TRUE(ledger.indexes.node_parts.at(kNode).unswept.contains({kBad, AttemptNo(1)}));
}

// What its nodes reported since is not nonsense: a device is free when it was swept, also at the
// next start.
TEST_F(ReplayTest, TheEndOfAnUnreadableJobIsFolded) {
  submit(kBad, "bad");
  place(kBad, 1, 0);
  place(kBad, 3, 1);
  row(core::CancelRequested{.job = kBad, .reason = "unreadable"});
  row(core::AttemptBroke{.job = kBad, .attempt = AttemptNo(1), .cause = "cancel was asked for"});
  row(core::NodeSwept{
      .job = kBad, .attempt = AttemptNo(1), .node = kNode, .why = core::SweptWhy::Stopped});
  row(core::AttemptEnded{
      .job = kBad, .attempt = AttemptNo(1), .verdict = {}, .fence = "swept", .job_ends = true});
  row(core::JobEnded{.job = kBad, .outcome = core::Outcome::Cancelled});
  EXPECT_TRUE(replay_.unreadable().contains(kBad));
  EXPECT_EQ(replay_.ledger().jobs.at(kBad).phase, core::JobPhase::Cancelled);
  EXPECT_TRUE(replay_.ledger().indexes.device_holders.empty());
}

TEST_F(ReplayTest, AnArchivedJobWithNonsenseIsStillShown) {
  journal::ArchivedJob archived{.job = kBad};
  const auto add = [&](core::EventBody body) {
    archived.rows.push_back(
        {.index = JournalIndex(archived.rows.size() + 1),
         .event = {.at = WallTime(std::chrono::seconds(1)), .body = std::move(body)}});
  };
  v1::JobSpec spec;
  spec.set_name("bad");
  add(core::JobSubmitted{.job = kBad, .spec = spec});
  add(core::NodeStarted{.job = kBad, .attempt = AttemptNo(7), .node = kNode});
  add(core::JobEnded{.job = kBad, .outcome = core::Outcome::Cancelled});
  const auto job = refold(archived);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->phase, core::JobPhase::Cancelled);
}

// The row of the success is missing, or has another payload: nothing is placed because of it.
TEST_F(ReplayTest, APlacementBeforeAPredecessorHasSucceededIsNonsense) {
  submit(kBad, "bad");
  v1::JobSpec spec;
  spec.set_name("good");
  v1::ResolvedSpec resolved;
  resolved.add_after(kBad.str());
  row(core::JobSubmitted{.job = kGood,
                         .request_id = RequestId("r"),
                         .spec = spec,
                         .resolved = resolved,
                         .spec_hash = "h"});
  place(kGood, 1, 0);
  ASSERT_TRUE(replay_.unreadable().contains(kGood));
  EXPECT_NE(
      replay_.unreadable().at(kGood).find("placed before job '" + kBad.str() + "' had succeeded"),
      std::string::npos);
  EXPECT_EQ(replay_.ledger().jobs.at(kGood).phase, core::JobPhase::Queued);
}

// Each of these would break an assertion of apply().
TEST_F(ReplayTest, EveryKindOfNonsenseIsMet) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  const core::Ledger& ledger = replay_.ledger();
  const AttemptNo first(1), second(2);
  const std::vector<core::EventBody> bodies = {
      core::CancelRequested{.job = kBad},
      core::JobSubmitted{.job = kGood},
      core::PredecessorSucceeded{.job = kGood, .predecessor = kBad},
      core::AttemptPlaced{.job = kGood, .attempt = second},
      core::NodeStarted{.job = kGood, .attempt = second, .node = kNode},
      core::NodeStarted{.job = kGood, .attempt = first, .node = NodeName("other")},
      core::RankExited{.job = kGood, .attempt = first, .node = kNode, .rank = RankNo(1)},
      core::AttemptBroke{.job = kGood, .attempt = second},
      core::AttemptEnded{.job = kGood, .attempt = first},
      core::AttemptCompleted{.job = kGood, .attempt = second},
      core::AttemptCompleted{.job = kGood, .attempt = first},  // while it is being launched
      core::CheckpointQuarantined{.job = kGood, .attempt = first, .step = 5},
      core::JobEnded{.job = kGood, .outcome = core::Outcome::Succeeded},
      core::LogsCollected{.job = kGood, .attempt = second, .node = kNode},
  };
  for (const core::EventBody& body : bodies) EXPECT_TRUE(nonsense(ledger, body)) << body.index();
  EXPECT_FALSE(nonsense(
      ledger, core::RankExited{.job = kGood, .attempt = first, .node = kNode, .rank = RankNo(0)}));
  EXPECT_FALSE(nonsense(ledger, core::AttemptBroke{.job = kGood, .attempt = first}));
}

// Otherwise its devices would never be free again: they are given back with the attempt's end.
TEST_F(ReplayTest, AJobThatEndedBeforeItsAttemptIsNonsense) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  row(core::AttemptBroke{.job = kGood, .attempt = AttemptNo(1), .cause = "x"});
  const core::JobEnded ended{.job = kGood, .outcome = core::Outcome::Failed};
  EXPECT_TRUE(nonsense(replay_.ledger(), ended));
  row(core::AttemptEnded{
      .job = kGood, .attempt = AttemptNo(1), .verdict = {}, .fence = "swept", .job_ends = true});
  EXPECT_FALSE(nonsense(replay_.ledger(), ended));
}

TEST_F(ReplayTest, ACheckpointMayBeQuarantinedOnceItWasComplete) {
  submit(kGood, "good");
  place(kGood, 1, 0);
  row(core::CheckpointCompleted{.job = kGood, .attempt = AttemptNo(1), .step = 5});
  EXPECT_FALSE(nonsense(replay_.ledger(), core::CheckpointQuarantined{
                                              .job = kGood, .attempt = AttemptNo(1), .step = 5}));
}

TEST_F(ReplayTest, ADeviceReservedByAnotherAttemptIsNonsense) {
  submit(kGood, "good");
  submit(kBad, "bad");
  place(kGood, 1, 0);
  place(kBad, 1, 0);
  EXPECT_TRUE(replay_.unreadable().contains(kBad));
  EXPECT_EQ(replay_.ledger().indexes.device_holders.at(kNode).at(0).first, kGood);
}

}  // namespace
}  // namespace muster::controller
