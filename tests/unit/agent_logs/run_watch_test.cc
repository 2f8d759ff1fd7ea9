#include "agent/logs/run_watch.h"

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

class RunWatchTest : public SubjectTest {
 protected:
  RunParts parts() {
    RunParts parts{.run = run_,
                   .logs_dir = run_dir_ / "logs",
                   .tails = {},
                   .process_logs = {},
                   .success_files = {},
                   .saves = {}};
    parts.tails.push_back(rank_tail(0));
    return parts;
  }
};

TEST_F(RunWatchTest, ARunThatSavesNothingHasNoLastScanToWaitFor) {
  RunWatch run(tools(), parts());
  EXPECT_EQ(run.next_due(), BootTime::max()) << "its directory is watched, and nothing is due";
  run.swept(now());
  EXPECT_EQ(last_scans_, 1);
}

TEST_F(RunWatchTest, AnEndPassesThroughItsWatchersInTheirOrder) {
  options_.free_bytes = [](const std::filesystem::path&) { return 0; };
  std::filesystem::create_directories(layout_.plog_dir(0) / "debug/plog");
  std::ofstream(layout_.plog_dir(0) / "debug/plog/plog-7_1.log")
      << "[ERROR] RuntimeError: NPU out of memory. Tried to allocate 2 GiB\n";
  RunParts with = parts();
  with.process_logs[0] = std::make_unique<PlogReader>(layout_.plog_dir(0));
  with.success_files.of_run = (dir_.path() / "done").string();
  RunWatch run(tools(), std::move(with));
  RankEnding ending = ending_of(0, true);
  run.explain(ending);
  EXPECT_EQ(ends_, std::vector<RankNo>{RankNo(0)});
  EXPECT_TRUE(answers_.at(0).evidence.starts_with("plog-7_1.log: [ERROR] RuntimeError: NPU out of"))
      << answers_[0].evidence << ", and not the full disk";
  run.explain(ending_of(0, true));
  EXPECT_TRUE(answers_.at(1).evidence.starts_with("No space left on device: the disk of"))
      << answers_[1].evidence;
  ends_.clear();
  test::Appender(log(0)).write("last line\n");
  run.ended(RankNo(0), false);
  while (run.pass(now())) {
  }
  EXPECT_TRUE(ends_.empty()) << "the success file is checked first";
  EXPECT_TRUE(after_results([&] {
    run.pass(now());
    return ends_.size() == 1;
  }));
}

TEST_F(RunWatchTest, ALogThatIsFollowedAfterTheSweepIsCopiedAndEnds) {
  RunWatch run(tools(), parts());
  run.swept(now());
  const auto file = dir_.path() / "train_5.log";
  test::Appender(file).write("all of it\n");
  auto tail = tail_of(node_name("rank-5"), PublishedRun::Kind::Copy);
  tail->copy = LogTail::Copy{.rank = 5};
  const ScriptLog log{.name = "rank-5", .rank = 5, .process = {}, .path = file.string()};
  const BootTime at = now();
  run.follow(std::move(tail), std::make_shared<ScriptLogCopy>(log, run_dir_, ScriptLogCopy::Open()),
             at);
  EXPECT_LE(run.next_due(), at + options_.last_scan) << "it is given up in any case";
  EXPECT_TRUE(after_results([&] {
    while (run.pass(now())) {
    }
    return run_->ended(node_name("rank-5"));
  }));
  EXPECT_EQ(run_->file(node_name("rank-5"))->extent().end, 10U);
}

TEST_F(RunWatchTest, WhatIsReportedForARunThatWasRemovedIsDropped) {
  RunWatch run(tools(), parts());
  run_->remove();
  run.explain(ending_of(0, true));
  run.swept(now());
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(last_scans_, 0);
}

}  // namespace
}  // namespace muster::agent
