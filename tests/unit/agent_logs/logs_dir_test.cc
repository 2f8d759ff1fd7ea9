// A job may replace its directory of logs by a link, for example to a file system that hangs.
// Whoever followed the link would hang; so nobody does, and what lies behind it is never read.
#include "agent/logs/logs_dir.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cerrno>

#include "agent/logs/auxiliary_log.h"
#include "agent/logs/plog_reader.h"
#include "tests/unit/agent_logs/subject_ground.h"
#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The directory `logs` becomes a link to `there`. Its files go on in `moved`.
void replace(const fs::path& logs, const fs::path& there, const fs::path& moved) {
  fs::create_directories(there);
  fs::rename(logs, moved);
  fs::create_directory_symlink(there, logs);
}

class LogsDirTest : public testing::Test {
 protected:
  LogsDirTest() { fs::create_directories(logs_); }
  void replace() { agent::replace(logs_, dir_.path() / "other", dir_.path() / "moved"); }
  int error_of(const std::string& name) {
    errno = 0;
    return logs().open(name, O_RDONLY) ? 0 : errno;
  }
  LogsDir& logs() {
    if (!opened_) opened_ = std::make_unique<LogsDir>(logs_);
    return *opened_;
  }

  test::TempDir dir_;
  const fs::path logs_ = dir_.path() / "logs";
  std::unique_ptr<LogsDir> opened_;
};

TEST_F(LogsDirTest, ALinkInItsPlaceIsNotFollowed) {
  test::Appender(logs_ / "a").write("x");
  EXPECT_EQ(error_of("a"), 0);
  replace();
  EXPECT_EQ(error_of("a"), 0) << "the directory that was opened";
  test::Appender(dir_.path() / "other/b").write("x");
  EXPECT_EQ(error_of("b"), ENOENT);
  struct stat there{};
  EXPECT_EQ(logs().stat("a", there), 0);
  EXPECT_NE(logs().stat("b", there), 0);
  EXPECT_TRUE(is_replaced(logs_));
  EXPECT_FALSE(is_replaced(dir_.path()));
  EXPECT_FALSE(is_replaced(dir_.path() / "nothing"));

  opened_.reset();  // another incarnation of the agent
  EXPECT_EQ(error_of("b"), ELOOP);
  EXPECT_EQ(logs().path_of("b").error().code, ErrorCode::NotFound);
  EXPECT_EQ(evidence_of_log(logs_ / "b"), "");
}

TEST_F(LogsDirTest, ADirectoryThatComesLaterOrAgainIsOpened) {
  fs::remove(logs_);
  EXPECT_EQ(error_of("a"), ENOENT);
  test::Appender(logs_).write("a file");
  EXPECT_EQ(error_of("a"), ENOTDIR);
  for (int i = 0; i < 2; ++i) {
    fs::remove_all(logs_);
    fs::create_directories(logs_);
    test::Appender(logs_ / "a").write("x");
    EXPECT_EQ(error_of("a"), 0) << i;
  }
}

TEST_F(LogsDirTest, AnotherDirectoryInItsPlaceIsOpened) {
  test::Appender(logs_ / "a").write("x");
  EXPECT_EQ(error_of("a"), 0);
  fs::rename(logs_, dir_.path() / "moved");
  EXPECT_EQ(error_of("a"), 0) << "no directory has the name";
  fs::create_directories(logs_);
  EXPECT_EQ(error_of("a"), ENOENT);
}

TEST_F(LogsDirTest, ErrorsHaveTheNameThatPeopleKnow) {
  const auto path = logs().path_of("a");
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(logs().named({ErrorCode::Io, "opening '" + path->string() + "': x"}).message,
            "opening '" + (logs_ / "a").string() + "': x");
  EXPECT_EQ(logs().named({ErrorCode::Io, "something else"}).message, "something else");
}

TEST_F(LogsDirTest, ACursorFileStaysInTheDirectory) {
  auto cursor = CursorFile::load(logs_ / "c");
  ASSERT_TRUE(cursor.has_value());
  replace();
  logs::v1::CursorRecord record;
  record.mutable_parsed()->set_anchor(std::string(1000, 'x'));
  std::uint64_t written = 0;
  for (; written < 2 * CursorFile::kRewriteAt; written += 1000) {
    ASSERT_TRUE(cursor->append(record).has_value());
    if (written % 10'000 == 0) cursor->close();
  }
  EXPECT_TRUE(fs::is_empty(dir_.path() / "other"));
  EXPECT_GT(fs::file_size(dir_.path() / "moved/c"), 1000U);
  EXPECT_LT(fs::file_size(dir_.path() / "moved/c"), CursorFile::kRewriteAt + 2000);
  auto again = CursorFile::load(logs_ / "c");
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->parsed()) << "behind a link nothing is read";
  const auto refused = again->append(record);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr(logs_.string()));
}

TEST_F(LogsDirTest, ACursorThatIsALinkCountsAsEmpty) {
  test::Appender(dir_.path() / "other").write("no frames");
  fs::create_symlink(dir_.path() / "other", logs_ / "c");
  const auto cursor = CursorFile::load(logs_ / "c");
  ASSERT_TRUE(cursor.has_value()) << cursor.error().message;
  EXPECT_TRUE(fs::is_symlink(logs_ / "c.damaged"));
  EXPECT_EQ(fs::file_size(dir_.path() / "other"), 9U);
}

TEST_F(LogsDirTest, ACursorThatBecomesALinkIsNotWritten) {
  auto cursor = CursorFile::load(logs_ / "c");
  ASSERT_TRUE(cursor.has_value());
  fs::create_symlink(dir_.path() / "other", logs_ / "c");
  logs::v1::CursorRecord record;
  record.mutable_parsed()->set_anchor("x");
  EXPECT_FALSE(cursor->append(record).has_value());
  EXPECT_FALSE(fs::exists(dir_.path() / "other"));
}

TEST_F(LogsDirTest, AProcessLogBehindALinkIsNotRead) {
  const fs::path plog = dir_.path() / "plog", tree = plog / "rank-0";
  fs::create_directories(tree / "debug/plog");
  test::Appender(tree / "debug/plog/plog-7_1.log").write("x\n");
  const PlogTree logs(tree);
  EXPECT_TRUE(logs.exists());
  EXPECT_EQ(logs.logs().size(), 1U);
  fs::rename(plog, dir_.path() / "moved");
  fs::create_directory_symlink(dir_.path() / "moved", plog);
  EXPECT_FALSE(logs.exists());
  EXPECT_TRUE(logs.logs().empty());
}

TEST_F(LogsDirTest, ACopyOfAScriptsLogStaysInTheDirectory) {
  const auto shared = std::make_shared<LogsDir>(logs_);
  ASSERT_TRUE(shared->path_of("").has_value());
  replace();
  const test::TempDir elsewhere;  // a file of the run directory would not be read
  const fs::path file = elsewhere.path() / "of-rank-0";
  test::Appender(file).write("x\n");
  const ScriptLog log{.name = "rank-0", .rank = 0, .process = {}, .path = file.string()};
  const ScriptLogCopy::Round round = ScriptLogCopy(log, dir_.path(), nullptr, shared).copy(false);
  EXPECT_TRUE(round.moved && !round.trouble);
  EXPECT_EQ(fs::file_size(dir_.path() / "moved/auxiliary-rank-0.log"), 2U);
  const auto late = ScriptLogCopy(log, dir_.path(), nullptr).copy(false);
  EXPECT_TRUE(late.trouble.has_value()) << "a link is not followed";
  EXPECT_TRUE(fs::is_empty(dir_.path() / "other"));
}

TEST_F(LogsDirTest, AProcessLogBehindALinkAtTheRunDirectoryIsNotRead) {
  const fs::path run = dir_.path() / "job.1", away = dir_.path() / "away";
  fs::create_directories(run / "plog/rank-0/debug/plog");
  test::Appender(run / "plog/rank-0/debug/plog/plog-7_1.log").write("x\n");
  const PlogTree logs(run / "plog/rank-0");
  EXPECT_EQ(logs.logs().size(), 1U);
  fs::rename(run, away);
  fs::create_directory_symlink(away, run);
  EXPECT_FALSE(logs.exists());
  EXPECT_TRUE(logs.logs().empty());
  EXPECT_EQ(logs.trim(0), 0U);
  EXPECT_TRUE(fs::exists(away / "plog/rank-0/debug/plog/plog-7_1.log"));
}

// The copy is emptied when its source begins anew. In its place is another name of a file outside.
TEST_F(LogsDirTest, ACopyOfAScriptsLogIsWrittenOnlyUnderItsOnlyName) {
  const test::TempDir elsewhere;
  const fs::path canary = elsewhere.path() / "canary", file = elsewhere.path() / "of-rank-0";
  test::Appender(canary).write("canary");
  test::Appender(file).write("x\n");
  fs::create_hard_link(canary, logs_ / "auxiliary-rank-0.log");
  const ScriptLog log{.name = "rank-0", .rank = 0, .process = {}, .path = file.string()};
  const auto round = ScriptLogCopy(log, dir_.path(), nullptr).copy(false);
  ASSERT_TRUE(round.trouble);
  EXPECT_THAT(round.trouble->message, HasSubstr("a hard link"));
  EXPECT_EQ(fs::file_size(canary), 6U);
}

class LogsReplaced : public WatchTest {
 protected:
  void SetUp() override {
    options_.blind_scan = 20ms;
    WatchTest::SetUp();
  }
  void replace() {
    agent::replace(run_dir_ / "logs", dir_.path() / "other", dir_.path() / "moved");
    // What the link leads to has a log, too.
    test::Appender(dir_.path() / "other/rank-0.log").write(line(70));
  }
  [[nodiscard]] bool is_reported() {
    return eventually([&] { return !troubles().empty(); });
  }
  void expect_one_report() {
    EXPECT_THAT(
        troubles(),
        ElementsAre(AllOf(HasSubstr("reading the logs of job 'job' attempt 1: '" +
                                    (run_dir_ / "logs").string() + "' is no directory any more"))));
  }
};

TEST_F(LogsReplaced, TheWatchGoesOnInTheDirectoryThatItHadAndSaysSoOnce) {
  add({0, 1});
  const test::Appender rank(log(0));
  rank.write(line(1));
  ASSERT_TRUE(eventually([&] { return reading(run_).ranks(0).step() == 1; }));
  replace();
  ASSERT_TRUE(is_reported());
  rank.write(line(2));
  ASSERT_TRUE(eventually([&] { return reading(run_).ranks(0).step() == 2; }));
  test::Appender(dir_.path() / "moved/rank-1.log").write(line(3));
  ASSERT_TRUE(eventually([&] { return reading(run_).ranks(1).step() == 3; }));
  expect_one_report();
}

// An agent that was restarted finds the link.
TEST_F(LogsReplaced, ALinkThatIsFoundIsNotFollowedAndTheRunCanEnd) {
  replace();
  add({0});
  const RunKey other{JobId("other"), AttemptNo(1)};
  const fs::path other_dir = dir_.path() / "other.1";
  fs::create_directories(other_dir / "logs");
  ASSERT_TRUE(watch_->add(other, other_dir, watching_, {0}, {}, {}, {}).has_value());
  test::Appender(other_dir / "logs/rank-0.log").write(line(5));
  ASSERT_TRUE(eventually([&] { return reading(other).ranks(0).step() == 5; }));
  ASSERT_TRUE(is_reported());
  watch_->rank_ended(run_, RankNo(0), true);
  ASSERT_TRUE(comes(run_, [](const Reports& reports) { return reports.ends.size() == 1; }));
  watch_->run_swept(run_);
  ASSERT_TRUE(eventually([&] {
    const auto piece = watch_->read({run_, RankNo(0)}, 0, 1000);
    return piece && piece->final;
  })) << "its run directory never goes";
  EXPECT_EQ(reading(run_).ranks(0).log_bytes(), 0U) << "nothing behind the link was read";
  expect_one_report();
}

}  // namespace
}  // namespace muster::agent
