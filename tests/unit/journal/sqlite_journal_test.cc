#include "controller/journal/sqlite_journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/journal/journal_dir.h"
#include "tests/unit/journal/sync_points.h"

namespace muster::journal {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SqliteJournal, IsEmptyAtFirst) {
  TempDir dir;
  const Opened opened = open_journal(dir.path() / "journal");
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_THAT(opened.rows, IsEmpty());
  EXPECT_EQ(opened.journal->last(), JournalIndex(0));
  EXPECT_THAT(opened.journal->notices(), IsEmpty());
}

TEST(SqliteJournal, GivesBackWhatWasAppended) {
  TempDir dir;
  std::vector<std::string> written;
  for (int incarnation = 0; incarnation < 3; ++incarnation) {
    Opened opened = open_journal(dir.path());
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.rows, written);
    for (const core::Event& event : one_of_every_kind()) {
      // archive_test.cc
      if (std::holds_alternative<core::JobArchived>(event.body) ||
          std::holds_alternative<core::TombstoneDropped>(event.body))
        continue;
      // live_rows_test.cc: of these, not every row stays
      if (std::holds_alternative<core::ControllerStarted>(event.body) ||
          std::holds_alternative<core::NodeRegistered>(event.body) ||
          std::holds_alternative<core::NodeDrained>(event.body) ||
          std::holds_alternative<core::NodeUndrained>(event.body) ||
          std::holds_alternative<core::NodeLabelled>(event.body) ||
          std::holds_alternative<core::NodeRemoved>(event.body) ||
          std::holds_alternative<core::SecretSet>(event.body) ||
          std::holds_alternative<core::SecretRemoved>(event.body) ||
          std::holds_alternative<core::StoreSet>(event.body) ||
          std::holds_alternative<core::StoreRemoved>(event.body))
        continue;
      const auto texts = append(*opened.journal, {event, event});
      written.insert(written.end(), texts.begin(), texts.end());
    }
    ASSERT_TRUE(opened.journal->append({}));
    EXPECT_EQ(opened.journal->last().value, written.size());
  }
}

TEST(SqliteJournal, TakesALargeBatch) {
  TempDir dir;
  std::vector<std::string> written;
  {
    Opened opened = open_journal(dir.path());
    std::vector<core::Event> events;
    for (std::uint32_t i = 0; i < 5'000; ++i) events.push_back(exited("j1", i, 1));
    core::Event large = exited("j2", 1, 1);
    std::get<core::RankExited>(large.body).evidence.assign(1 << 20, 'x');
    events.push_back(large);
    written = append(*opened.journal, events);
  }
  EXPECT_EQ(open_journal(dir.path()).rows, written);
}

TEST(SqliteJournal, IsPrivate) {
  TempDir dir;
  const auto path = dir.path() / "journal";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  SqliteOptions options = options_for(path);
  options.ballast_bytes = 1 << 20;
  const mode_t before = ::umask(0);
  Opened opened = open_journal(std::move(options));
  ::umask(before);
  append(*opened.journal, {started(1)});
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 6);  // journal.db, -wal, -shm, head, ballast, lock
}

TEST(SqliteJournal, RefusesASecondController) {
  TempDir dir;
  Opened first = open_journal(dir.path());
  const Opened second = open_journal(dir.path());
  ASSERT_TRUE(second.error);
  EXPECT_EQ(second.error->code, ErrorCode::Conflict);
  EXPECT_THAT(second.error->message,
              HasSubstr("another controller (pid " + std::to_string(::getpid()) +
                        ") has it open; stop that one"));
  first.journal.reset();
  EXPECT_FALSE(open_journal(dir.path()).error);
}

TEST(SqliteJournal, SaysWhenItsDirectoryCannotBe) {
  TempDir dir;
  const Opened nowhere = open_journal(dir.path() / "a" / "b");
  ASSERT_TRUE(nowhere.error);
  EXPECT_THAT(nowhere.error->message, HasSubstr("No such file or directory"));
  write_all(dir.path() / "file", "x");
  const Opened file = open_journal(dir.path() / "file");
  ASSERT_TRUE(file.error);
  EXPECT_THAT(file.error->message, HasSubstr("it is not a directory"));
}

TEST(SqliteJournal, SyncsOnceABatchBetweenItsSeams) {
  TempDir dir;
  std::uint64_t before = 0, after = 0;
  SqliteOptions options = options_for(dir.path());
  options.before_sync = [&] { before = syncs_so_far(); };
  options.after_sync = [&] { after = syncs_so_far(); };
  Opened opened = open_journal(std::move(options));
  append(*opened.journal, {started(1)});  // a WAL's first batch syncs its header, too
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t start = syncs_so_far();
    append(*opened.journal, {registered("n01", "b1"), registered("n02", "b1"), exited("j", 1, 1)});
    EXPECT_EQ(before, start);
    EXPECT_EQ(after, start + 1);
    EXPECT_EQ(syncs_so_far(), start + 1);
  }
}

// Regression: SQLite continues to write into files that no longer have a name. What was
// acknowledged then was lost with the process.
TEST(SqliteJournal, AcknowledgesNothingOnceItsFilesAreGoneOrOthers) {
  for (const char* file : {"journal.db", "journal.db-wal"}) {
    for (const bool replaced : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", file, replaced ? "replaced" : "removed"));
      TempDir dir;
      Opened opened = open_journal(dir.path());
      append(*opened.journal, {started(1)});
      const auto path = dir.path() / file;
      if (replaced) std::filesystem::copy_file(path, dir.path() / "copy");
      std::filesystem::remove(path);
      if (replaced) std::filesystem::rename(dir.path() / "copy", path);
      const core::Event event = exited("j", 1, 1);
      const Row row{.index = JournalIndex(2), .event = event};
      const auto appended = opened.journal->append({&row, 1});
      ASSERT_FALSE(appended);
      EXPECT_THAT(appended.error().message,
                  HasSubstr(fmt::format("{}' was {} while the controller was using it", file,
                                        replaced ? "replaced" : "removed")));
      EXPECT_FALSE(opened.journal->append({&row, 1})) << "and nothing after it";
    }
  }
}

TEST(SqliteJournal, RefusesANewerVersionsTables) {
  TempDir dir;
  {
    append(*open_journal(dir.path()).journal, {started(1)});
  }
  sql(dir.path(), "PRAGMA user_version=2");
  const Opened opened = open_journal(dir.path(), true);  // no reason to lose anything
  ASSERT_TRUE(opened.error);
  EXPECT_EQ(opened.error->code, ErrorCode::Unsupported);
  EXPECT_THAT(opened.error->message, HasSubstr("version 2, this muster knows version 1"));
}

TEST(SqliteJournal, RefusesAnotherProgramsDatabase) {
  TempDir dir;
  sql(dir.path(), "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
  const Opened opened = open_journal(dir.path());
  ASSERT_TRUE(opened.error);
  EXPECT_THAT(opened.error->message, HasSubstr("not a journal's"));
  EXPECT_EQ(sql_number(dir.path(), "SELECT x FROM t"), 1);  // untouched
}

}  // namespace
}  // namespace muster::journal
