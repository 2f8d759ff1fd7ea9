// The test fixture for one Watcher: the tools of the watch thread, a run, and what was reported.
// gtest creates it for each test. There is no watch thread: the test's thread calls the watcher and
// takes the results of scan threads, so each step happens when the test says so.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "agent/logs/log_tails.h"
#include "agent/logs/watch_thread.h"
#include "common/rundir/layout.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {

class SubjectTest : public testing::Test, public RankEndings {
 protected:
  SubjectTest() {
    std::filesystem::create_directories(run_dir_ / "logs");
    watching_.set_grammar("megatron");
  }
  // Made at its first use: the test sets the options before.
  WatchThread& thread() {
    if (!inbox_) {
      inbox_ = *Inbox::make();
      thread_ = std::make_unique<WatchThread>(options_, reports_, inbox_);
      thread_->tools().changed_files.open();
    }
    return *thread_;
  }
  WatchTools& tools() { return thread().tools(); }
  static BootTime now() { return system_clock().now().boot; }

  // Takes results of scan threads until the condition is true.
  template <class Condition>
  [[nodiscard]] bool after_results(Condition condition) {
    const BootTime until = now() + std::chrono::seconds(20);
    while (!condition()) {
      if (now() >= until) return false;
      pollfd ready{tools().inbox->fd(), POLLIN, 0};
      (void)::poll(&ready, 1, 20);
      bool any = false;
      EXPECT_TRUE(thread().take_tasks(any));
    }
    return true;
  }

  // Takes the next result, whoever waits for it.
  [[nodiscard]] bool take_result() {
    bool any = false;
    pollfd ready{tools().inbox->fd(), POLLIN, 0};
    return ::poll(&ready, 1, 20'000) == 1 && thread().take_tasks(any) && any;
  }

  // A log of the run, as FileWatch makes it.
  std::unique_ptr<LogTail> tail_of(const LogName& name, PublishedRun::Kind kind) {
    const bool of_rank = kind == PublishedRun::Kind::Rank;
    auto patterns = Patterns::make(watching_);
    EXPECT_TRUE(patterns.has_value());
    const auto path =
        of_rank ? layout_.rank_log(name.rank.value) : layout_.node_log(name.auxiliary);
    auto file = LogFile::open(path, of_rank ? layout_.rank_cursor(name.rank.value)
                                            : layout_.node_log_cursor(name.auxiliary));
    EXPECT_TRUE(file.has_value());
    const std::shared_ptr<LogFile> shared = std::move(*file);
    EXPECT_TRUE(run_->add(name, kind, shared));
    return std::make_unique<LogTail>(name, path, shared, *patterns);
  }
  LogName rank_name(std::uint32_t rank) { return {.run = run_->key, .rank = RankNo(rank)}; }
  LogName node_name(const std::string& name) {
    return {.run = run_->key, .rank = RankNo(0), .auxiliary = name};
  }
  std::unique_ptr<LogTail> rank_tail(std::uint32_t rank) {
    return tail_of(rank_name(rank), PublishedRun::Kind::Rank);
  }
  std::filesystem::path log(std::uint32_t rank) { return layout_.rank_log(rank); }
  static std::string line(int step) {
    return " iteration " + std::to_string(step) +
           "/ 100 | consumed samples: 8 | elapsed time per iteration (ms): 12.5 | lm loss: 2.5E+00 "
           "| loss scale: 1.0 |\n";
  }
  static RankEnding ending_of(std::uint32_t rank, bool failed) {
    return {.rank = RankNo(rank), .failed = failed, .answer = {}, .log = nullptr};
  }
  v1::AttemptReading reading() {
    v1::AttemptReading reading;
    run_->fill(reading, 0, now());
    return reading;
  }

  // RankEndings.
  [[nodiscard]] bool wait() const override { return endings_wait_; }
  void explain(RankEnding ending) override { explained_.push_back(std::move(ending)); }
  void report(const RankEnding& ending) override { answered_.push_back(ending); }

  test::TempDir dir_;
  const std::filesystem::path run_dir_ = dir_.path() / "job.1";
  const rundir::RunLayout layout_{run_dir_};
  WatchOptions options_;
  v1::Watching watching_;
  std::vector<std::int64_t> first_steps_;
  std::vector<RankNo> ends_;
  std::vector<RankEnd> answers_;  // of ends_
  std::vector<std::string> troubles_;
  int shards_ = 0, last_scans_ = 0;
  bool endings_wait_ = false;
  std::vector<RankEnding> explained_, answered_;
  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  std::shared_ptr<PublishedRun> run_ =
      std::make_shared<PublishedRun>(RunKey{JobId("job"), AttemptNo(1)}, marks_, nullptr);

 private:
  WatchReports reports_{
      [](const std::function<void()>& closure) { closure(); },
      {.on_first_step = [this](const RunKey&, std::int64_t step) { first_steps_.push_back(step); },
       .on_rank_end =
           [this](const RunKey&, RankNo rank, const RankEnd& answer) {
             ends_.push_back(rank);
             answers_.push_back(answer);
           },
       .on_shard_finished = [this](const RunKey&) { ++shards_; },
       .on_last_scan = [this](const RunKey&) { ++last_scans_; },
       .on_trouble = [this](const std::string& text) { troubles_.push_back(text); }}};
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<WatchThread> thread_;
};

}  // namespace muster::agent
