// How long the facts of a run wait for what the watch finds. The watch here does what the test
// says; tests/unit/agent has the real one.
#include "agent/run/run_reporting.h"

#include <string>
#include <vector>

#include "common/rundir/records.h"
#include "tests/unit/agent_run/saying_watch.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

class RunReportingTest : public ::testing::Test {
 protected:
  // The run directory's launch record with this order.
  RunView& view(const v1::NodeLaunch& order) {
    const rundir::RunLayout layout(dir_.path() / "run");
    EXPECT_TRUE(rundir::make_run(layout));
    rundir::v1::Launch launch;
    launch.set_version(1);
    launch.set_boot_id("b-1");
    launch.set_order(order.SerializeAsString());
    for (const v1::RankProcess& rank : order.ranks()) launch.add_ranks()->set_rank(rank.rank());
    EXPECT_TRUE(rundir::write_launch(layout, launch));
    view_ = std::make_unique<RunView>(layout, BootId("b-1"));
    EXPECT_TRUE(view_->refresh());
    EXPECT_TRUE(view_->order_known());
    seen_ = view_->seen();
    return *view_;
  }
  static v1::NodeLaunch order() {
    v1::NodeLaunch order;
    order.add_ranks()->set_rank(0);
    return order;
  }
  void end(std::int32_t code) { seen_.exits[0] = {.rank = 0, .code = code}; }
  std::string update(BootTime now) {
    std::string lines;
    for (const std::string& line : reporting_.update(watch_, kRun, *view_, seen_, now))
      lines += line + "\n";
    return lines;
  }

  TempDir dir_;
  SayingWatch watch_;
  RunReporting reporting_;
  std::unique_ptr<RunView> view_;
  RunSeen seen_;
  const BootTime now_{seconds(100)};
};

TEST_F(RunReportingTest, TellsEverythingOnce) {
  view(order());
  end(1);
  seen_.swept = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(update(now_), "");
  EXPECT_EQ(watch_.adds, 1);
  EXPECT_EQ(watch_.swept, 1);
  EXPECT_EQ(watch_.ended, (std::map<std::uint32_t, bool>{{0, true}}));
  reporting_.close(watch_, kRun);
  EXPECT_EQ(watch_.removed, 1);
}

TEST_F(RunReportingTest, AFailedExitWaitsASecondForItsEvidence) {
  view(order());
  end(1);
  update(now_);
  EXPECT_FALSE(reporting_.ready(0, false, now_));
  EXPECT_TRUE(reporting_.ready(0, true, now_)) << "the evidence is there";
  EXPECT_EQ(reporting_.due(), now_ + seconds(1));
  EXPECT_TRUE(reporting_.ready(0, false, now_ + seconds(1)));
  update(now_ + seconds(1));
  EXPECT_EQ(reporting_.due(), std::nullopt);
}

TEST_F(RunReportingTest, AnEndThatWasReadWaitsForNothing) {
  view(order());
  end(1);
  update(now_);
  reporting_.end_read(0);
  EXPECT_TRUE(reporting_.ready(0, false, now_));
}

TEST_F(RunReportingTest, AGoodExitWaitsWhileItsLogsAreRead) {
  v1::NodeLaunch wanted = order();
  wanted.mutable_watching()->set_success_regex("done");
  view(wanted);
  end(0);
  update(now_);
  watch_.bytes = 1;
  update(now_ + seconds(10));
  EXPECT_FALSE(reporting_.ready(0, false, now_ + seconds(10))) << "bytes were read meanwhile";
  update(now_ + seconds(20));
  EXPECT_TRUE(reporting_.ready(0, false, now_ + seconds(20))) << "nothing was read for 10 s";
}

// Regression: a success file on a file system that hangs counted as one that is not there.
TEST_F(RunReportingTest, ASuccessThatTheWatchDoesNotAnswerIsUnknown) {
  v1::NodeLaunch wanted = order();
  wanted.mutable_ranks(0)->set_success_file("/dead/done");
  view(wanted);
  end(0);
  update(now_);
  update(now_ + seconds(10));
  ASSERT_TRUE(reporting_.ready(0, false, now_ + seconds(10)));
  EXPECT_TRUE(reporting_.success_unknown(0, false));
  EXPECT_FALSE(reporting_.success_unknown(0, true)) << "its mark has the answer";
  EXPECT_FALSE(reporting_.success_unknown(1, false)) << "it has not ended";
  reporting_.end_read(0);
  EXPECT_FALSE(reporting_.success_unknown(0, false)) << "the watch has answered";
}

TEST_F(RunReportingTest, TheSuccessOfAFailedExitIsNotUnknown) {
  v1::NodeLaunch wanted = order();
  wanted.mutable_watching()->set_success_regex("done");
  view(wanted);
  end(1);
  update(now_);
  EXPECT_FALSE(reporting_.success_unknown(0, false));
}

TEST_F(RunReportingTest, NoSuccessIsUnknownWhereTheStatusIsEnough) {
  v1::NodeLaunch steps = order();
  steps.mutable_watching()->set_grammar("megatron");
  view(steps);
  end(0);
  update(now_);
  EXPECT_FALSE(reporting_.ready(0, false, now_)) << "it waits for its last step";
  EXPECT_FALSE(reporting_.success_unknown(0, false));
}

TEST_F(RunReportingTest, AnExitThatWasAskedForWaitsForNothing) {
  v1::NodeLaunch wanted = order();
  wanted.mutable_watching()->set_success_regex("done");
  view(wanted);
  seen_.exits[0] = {.rank = 0, .code = 1, .stop_requested = true};
  update(now_);
  EXPECT_TRUE(reporting_.ready(0, false, now_));
}

TEST_F(RunReportingTest, ASweepWaitsForTheLastScan) {
  v1::NodeLaunch saves = order();
  saves.mutable_watching()->set_save_dir("/save");
  saves.mutable_watching()->set_layout("megatron");
  view(saves);
  seen_.swept = true;
  update(now_);
  EXPECT_FALSE(reporting_.scanned(now_));
  EXPECT_EQ(reporting_.due(), now_ + seconds(15));
  EXPECT_TRUE(reporting_.scanned(now_ + seconds(15)));
  reporting_.last_scan();
  EXPECT_TRUE(reporting_.scanned(now_));
}

TEST_F(RunReportingTest, AWatchWithoutDescriptorsIsAskedAgain) {
  view(order());
  end(1);
  watch_.refuse = ErrorCode::ResourceExhausted;
  EXPECT_EQ(update(now_), "watching the logs of run '" + kRun.first.str() +
                              ".1': no watch today; its progress is not seen, trying again until "
                              "it is\n");
  EXPECT_TRUE(reporting_.ready(0, false, now_)) << "nobody reads its log";
  EXPECT_EQ(reporting_.due(), now_ + seconds(1));
  EXPECT_EQ(update(now_ + seconds(1)), "") << "reported once";
  watch_.refuse.reset();
  update(now_ + seconds(2));
  EXPECT_EQ(watch_.adds, 3);
  EXPECT_TRUE(watch_.ended.contains(0));
}

TEST_F(RunReportingTest, AnOrderThatIsWrongIsNotTriedAgain) {
  view(order());
  watch_.refuse = ErrorCode::InvalidArgument;
  EXPECT_NE(update(now_), "");
  EXPECT_EQ(reporting_.due(), std::nullopt);
  update(now_ + seconds(60));
  EXPECT_EQ(watch_.adds, 1);
  reporting_.close(watch_, kRun);
  EXPECT_EQ(watch_.removed, 0);
}

TEST_F(RunReportingTest, FollowsEachLogOfAScriptOnce) {
  view(order());
  for (const char* name : {"rank-0", "rank-1"}) {
    seen_.script_logs.emplace_back().name = name;
    update(now_);
  }
  EXPECT_EQ(watch_.followed, (std::vector<std::string>{"rank-0", "rank-1"}));
}

}  // namespace
}  // namespace muster::agent
