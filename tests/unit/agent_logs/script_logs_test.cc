#include "agent/logs/script_logs.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <semaphore>
#include <thread>

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using CopyState = LogTail::Copy::State;

class ScriptLogsTest : public SubjectTest {
 protected:
  void SetUp() override {
    options_.open_script_log = [this](const char* path, int flags) {
      if (hangs_) {
        asked_.release();
        server_.acquire();
      }
      return ::open(path, flags);
    };
    std::vector<std::unique_ptr<LogTail>> tails;
    tails.push_back(rank_tail(0));
    logs_ = std::make_unique<LogTails>(tools(), run_, *this, run_dir_ / "logs", std::move(tails));
    scripts_ = std::make_shared<ScriptLogs>(tools(), run_, *logs_);
  }
  void follow(std::uint32_t rank) {
    const std::string name = "rank-" + std::to_string(rank);
    auto tail = tail_of(node_name(name), PublishedRun::Kind::Copy);
    tail->copy = LogTail::Copy{.rank = rank};
    tail_ = tail.get();
    const ScriptLog log{.name = name, .rank = rank, .process = {}, .path = file_.string()};
    scripts_->follow(std::move(tail),
                     std::make_shared<ScriptLogCopy>(log, run_dir_, options_.open_script_log));
  }
  void read() {
    while (logs_->pass(now())) {
    }
  }
  [[nodiscard]] bool wait() const override { return scripts_->end_waits(); }

  const std::filesystem::path file_ = dir_.path() / "train_5.log";
  std::atomic<bool> hangs_ = false;
  std::counting_semaphore<> asked_{0}, server_{0};
  std::unique_ptr<LogTails> logs_;
  std::shared_ptr<ScriptLogs> scripts_;
  LogTail* tail_ = nullptr;
};

TEST_F(ScriptLogsTest, AnEndWaitsUntilWhatTheFileHadIsCopiedAndRead) {
  follow(5);
  scripts_->pass(now());
  ASSERT_TRUE(take_result());
  read();
  EXPECT_FALSE(scripts_->end_waits());
  test::Appender(file_).write("RuntimeError: of rank 5\n");
  scripts_->ended(RankNo(0), true);
  EXPECT_TRUE(scripts_->end_waits());
  EXPECT_EQ(tail_->copy->state, CopyState::EndDue);
  scripts_->pass(now());
  EXPECT_EQ(tail_->copy->state, CopyState::EndUnderWay);
  ASSERT_TRUE(take_result());
  EXPECT_EQ(tail_->copy->state, CopyState::Follows);
  EXPECT_TRUE(scripts_->end_waits()) << "it is not read yet";
  read();
  EXPECT_FALSE(scripts_->end_waits());
  RankEnding ending = ending_of(0, true);
  ending.log = logs_->first_rank()->file;
  EXPECT_TRUE(scripts_->explain(ending));
  EXPECT_EQ(ending.answer.evidence, "rank 5: RuntimeError: of rank 5");
}

TEST_F(ScriptLogsTest, ACopyUnderWayWhenTheRankEndsIsNotEnough) {
  hangs_ = true;
  follow(5);
  scripts_->pass(now());
  asked_.acquire();
  scripts_->ended(RankNo(0), true);
  scripts_->pass(now());
  EXPECT_EQ(tail_->copy->state, CopyState::EndDue);
  hangs_ = false;
  server_.release();
  ASSERT_TRUE(take_result());
  EXPECT_TRUE(scripts_->end_waits());
  scripts_->pass(now());
  ASSERT_TRUE(take_result());
  read();
  EXPECT_FALSE(scripts_->end_waits());
}

TEST_F(ScriptLogsTest, ACopyThatHangsDelaysNoEndAndIsGivenUpAfterTheSweep) {
  hangs_ = true;
  follow(5);
  scripts_->pass(now());
  asked_.acquire();
  read();
  scripts_->ended(RankNo(0), false);
  EXPECT_TRUE(scripts_->end_waits());
  scripts_->pass(scripts_->next_due());
  EXPECT_FALSE(scripts_->end_waits());
  const BootTime swept = now();
  scripts_->swept(swept);
  EXPECT_EQ(scripts_->next_due(), swept + options_.last_scan);
  scripts_->pass(swept + options_.last_scan);
  EXPECT_EQ(tail_->copy->state, CopyState::Complete);
  EXPECT_EQ(scripts_->next_due(), BootTime::max());
  ASSERT_EQ(troubles_.size(), 2U);
  EXPECT_EQ(troubles_[1], "copying log '" + file_.string() +
                              "' of rank 5 of job 'job' attempt 1: not to its end within 15000 ms "
                              "of the sweep; the rest of it is left out");
  hangs_ = false;
  server_.release();
  EXPECT_TRUE(take_result());
}

TEST_F(ScriptLogsTest, AfterTheSweepAnEmptyRoundCompletesTheCopy) {
  test::Appender(file_).write("all\n");
  follow(5);
  scripts_->swept(now());
  scripts_->pass(now());
  ASSERT_TRUE(take_result());
  EXPECT_EQ(tail_->copy->state, CopyState::Complete);
  scripts_->poll({.wall = {}, .boot = now()});
  scripts_->pass(now());
  EXPECT_EQ(scripts_->next_due(), BootTime::max()) << "nothing is copied any more";
  read();
  EXPECT_FALSE(scripts_->end_waits());
}

TEST_F(ScriptLogsTest, AnEndDoesNotWaitForACopyThatCannotBeRead) {
  test::Appender(dir_.path() / "plain").write("no directory");
  auto opened = LogFile::open(dir_.path() / "plain/rank-5.log", dir_.path() / "cursor");
  ASSERT_TRUE(opened.has_value());
  const std::shared_ptr<LogFile> unreadable = std::move(*opened);
  ASSERT_TRUE(run_->add(node_name("rank-5"), PublishedRun::Kind::Copy, unreadable));
  auto tail = std::make_unique<LogTail>(node_name("rank-5"), dir_.path() / "plain/rank-5.log",
                                        unreadable, *Patterns::make(watching_));
  tail->copy = LogTail::Copy{.rank = 5};
  const ScriptLog log{.name = "rank-5", .rank = 5, .process = {}, .path = file_.string()};
  scripts_->follow(std::move(tail), std::make_shared<ScriptLogCopy>(log, run_dir_, nullptr));
  test::Appender(this->log(0)).write("all done\n");
  logs_->ended(RankNo(0), false);
  scripts_->ended(RankNo(0), false);
  scripts_->pass(now());
  ASSERT_TRUE(take_result());
  logs_->poll({.wall = {}, .boot = now()});
  read();
  EXPECT_EQ(explained_.size(), 1U);
  EXPECT_EQ(troubles_.size(), 1U);
}

// Closing a file may hang with its file system.
TEST_F(ScriptLogsTest, AScanThreadDestroysTheCopy) {
  const auto destroyed = std::make_shared<std::promise<std::thread::id>>();
  std::future<std::thread::id> by = destroyed->get_future();
  {
    auto tail = tail_of(node_name("rank-5"), PublishedRun::Kind::Copy);
    tail->copy = LogTail::Copy{.rank = 5};
    std::shared_ptr<void> owned(
        nullptr, [destroyed](void*) { destroyed->set_value(std::this_thread::get_id()); });
    ScriptLog log{.name = "rank-5", .rank = 5, .process = {}, .path = file_.string()};
    log.rights = [owned = std::move(owned)] { return owned; };
    scripts_->follow(std::move(tail),
                     std::make_shared<ScriptLogCopy>(std::move(log), run_dir_, nullptr));
  }
  scripts_.reset();
  ASSERT_EQ(by.wait_for(20s), std::future_status::ready);
  EXPECT_NE(by.get(), std::this_thread::get_id());
}

class ScriptLogsWithoutInotify : public ScriptLogsTest {
 protected:
  void SetUp() override {
    options_.inotify_init = [](int) { return errno = EMFILE, -1; };
    ScriptLogsTest::SetUp();
  }
};

TEST_F(ScriptLogsWithoutInotify, TheyAreCopiedAsOftenAsLogsAreRead) {
  follow(5);
  scripts_->pass(now());
  ASSERT_TRUE(take_result());
  test::Appender(file_).write("line\n");
  const BootTime due = scripts_->next_due();
  EXPECT_LE(due, now() + options_.unnotified_scan);
  scripts_->pass(due);
  EXPECT_GT(scripts_->next_due(), due);
  ASSERT_TRUE(take_result());
  read();
  EXPECT_EQ(tail_->file->extent().end, 5U);
}

}  // namespace
}  // namespace muster::agent
