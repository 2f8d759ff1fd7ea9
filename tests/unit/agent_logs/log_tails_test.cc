#include "agent/logs/log_tails.h"

#include <cerrno>

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

class LogTailsTest : public SubjectTest {
 protected:
  void watch(std::vector<std::unique_ptr<LogTail>> tails) {
    logs_ = std::make_unique<LogTails>(tools(), run_, *this, run_dir_ / "logs", std::move(tails));
  }
  void watch_ranks(std::uint32_t count) {
    std::vector<std::unique_ptr<LogTail>> tails;
    for (std::uint32_t rank = 0; rank < count; ++rank) tails.push_back(rank_tail(rank));
    watch(std::move(tails));
  }
  void pass() {
    while (logs_->pass(now())) {
    }
  }
  std::uint64_t bytes(std::uint32_t rank) {
    return reading().ranks(static_cast<int>(rank)).log_bytes();
  }

  std::unique_ptr<LogTails> logs_;
};

TEST_F(LogTailsTest, ALogIsReadWhenItsFileIsReported) {
  watch_ranks(2);
  pass();
  for (const std::uint32_t rank : {0, 1}) test::Appender(log(rank)).write(line(3));
  logs_->changed("rank-1.log");
  pass();
  EXPECT_EQ(bytes(0), 0U);
  EXPECT_EQ(bytes(1), line(3).size());
  EXPECT_EQ(first_steps_, std::vector<std::int64_t>{3});
  logs_->changed("");  // reports were lost
  pass();
  EXPECT_EQ(bytes(0), line(3).size());
  EXPECT_EQ(first_steps_.size(), 1U) << "once for a run";
  logs_->changed("worker.log");  // no log of these
}

TEST_F(LogTailsTest, AReportOfTheRenamedFileCountsForTheLog) {
  watch_ranks(1);
  const test::Appender rank(log(0));
  rank.write(line(1));
  logs_->changed("rank-0.log");
  pass();
  int step = 1;
  std::filesystem::path named = log(0);
  for (const char* suffix : {".1", "-20261126", ".bak.gz"}) {
    SCOPED_TRACE(suffix);
    const std::filesystem::path renamed = log(0).string() + suffix;
    std::filesystem::rename(named, renamed);
    named = renamed;
    rank.write(line(++step));
    logs_->changed(renamed.filename().string());
    pass();
    EXPECT_EQ(reading().ranks(0).step(), step);
  }
}

TEST_F(LogTailsTest, WithoutReportsLogsArePolled) {
  options_.inotify_init = [](int) { return errno = EMFILE, -1; };
  watch_ranks(1);
  pass();
  test::Appender(log(0)).write(line(1));
  const BootTime due = logs_->next_due();
  ASSERT_LE(due, now() + options_.unnotified_scan);
  logs_->pass(due);
  EXPECT_EQ(bytes(0), line(1).size());
  logs_->swept(due);
  logs_->pass(due);
  EXPECT_EQ(logs_->next_due(), BootTime::max()) << "it is final";
}

TEST_F(LogTailsTest, AnEndIsExplainedAfterAllOfTheLogIsReadAndOnlyOnce) {
  watch_ranks(1);
  test::Appender(log(0)).write(line(7) + "ValueError: no shape");
  logs_->ended(RankNo(0), true);
  endings_wait_ = true;
  pass();
  EXPECT_TRUE(explained_.empty()) << "another watcher is not ready";
  endings_wait_ = false;
  logs_->wake_endings();
  pass();
  ASSERT_EQ(explained_.size(), 1U);
  EXPECT_EQ(explained_[0].answer.evidence, "ValueError: no shape");
  EXPECT_EQ(explained_[0].answer.step, 7);
  EXPECT_TRUE(explained_[0].failed);
  EXPECT_GT(explained_[0].quality, 0);
  logs_->wake_endings();
  logs_->changed("");
  pass();
  EXPECT_EQ(explained_.size(), 1U);
}

TEST_F(LogTailsTest, TheStepsOfACopyCountForTheScriptUntilItHasItsOwn) {
  watch_ranks(1);
  for (const std::uint32_t rank : {6, 5}) {
    auto tail = tail_of(node_name("rank-" + std::to_string(rank)), PublishedRun::Kind::Copy);
    tail->copy = LogTail::Copy{.rank = rank};
    logs_->add(std::move(tail));
  }
  const auto write = [&](const std::filesystem::path& path, int step) {
    test::Appender(path).write(line(step));
    logs_->changed(path.filename().string());
    pass();
  };
  write(layout_.node_log("rank-6"), 8);
  EXPECT_EQ(reading().ranks(0).step(), 8);
  write(layout_.node_log("rank-5"), 3);
  EXPECT_EQ(reading().ranks(0).step(), 3) << "the lowest rank reports";
  write(layout_.node_log("rank-6"), 9);
  EXPECT_EQ(reading().ranks(0).step(), 3);
  write(log(0), 2);
  EXPECT_EQ(reading().ranks(0).step(), 2);
  EXPECT_EQ(reading().ranks(0).log_bytes(), run_->bytes_read());
}

TEST_F(LogTailsTest, ACopyEndsWhenItIsComplete) {
  watch_ranks(1);
  auto made = tail_of(node_name("rank-5"), PublishedRun::Kind::Copy);
  made->copy = LogTail::Copy{.rank = 5};
  LogTail& tail = logs_->add(std::move(made));
  logs_->swept(now());
  pass();
  EXPECT_TRUE(run_->ended(rank_name(0)));
  EXPECT_FALSE(run_->ended(node_name("rank-5")));
  tail.copy->state = LogTail::Copy::State::Complete;
  tail.unread = true;
  pass();
  EXPECT_TRUE(run_->ended(node_name("rank-5")));
}

TEST_F(LogTailsTest, AfterTheSweepTheFileThatReplacedALogIsReadAndTheLogEnds) {
  watch_ranks(1);
  const test::Appender rank(log(0));
  rank.write(line(1));
  logs_->changed("rank-0.log");
  pass();
  std::filesystem::rename(log(0), log(0).string() + ".1");
  test::Appender(log(0)).write(line(2));
  logs_->changed("rank-0.log");
  pass();
  EXPECT_EQ(reading().ranks(0).step(), 1) << "the old file is still written";
  logs_->swept(now());
  pass();
  EXPECT_EQ(reading().ranks(0).step(), 2);
  EXPECT_TRUE(run_->ended(rank_name(0)));
  EXPECT_EQ(run_->bytes_read(), line(1).size() + line(2).size());
}

TEST_F(LogTailsTest, TroubleWithALogIsReportedOnce) {
  watch_ranks(2);
  LogTail* const first = logs_->first_rank();
  logs_->trouble(*first, Error{ErrorCode::Internal, "reading log 'x': Input/output error"});
  logs_->trouble(*first, Error{ErrorCode::Internal, "reading log 'x': Input/output error"});
  EXPECT_EQ(troubles_, std::vector<std::string>{"reading log 'x': Input/output error, trying on"});
}

}  // namespace
}  // namespace muster::agent
