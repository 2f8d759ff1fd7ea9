// A person inspects a journal. The result is what a start would find, and afterwards the directory
// is unchanged, to the byte. Regression: an inspection removed the ballast, or moved the content of
// the WAL; the next full disk revealed this.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

using testing::HasSubstr;

// Every file with what a change would change: its bytes, its length on the disk, its inode, its
// times.
std::map<std::string, std::string> everything_of(const std::filesystem::path& dir) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    struct stat status{};
    if (::stat(entry.path().c_str(), &status) != 0) throw std::runtime_error("stat");
    found[entry.path().filename().native()] =
        read_all(entry.path()) + "|" + std::to_string(status.st_blocks) + "|" +
        std::to_string(status.st_ino) + "|" + std::to_string(status.st_mode) + "|" +
        std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  }
  return found;
}
std::vector<std::string> names_in(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& [name, what] : everything_of(dir)) names.push_back(name);
  return names;
}

Opened open_read_only(const std::filesystem::path& dir) {
  return open_journal(SqliteOptions{.dir = dir, .read_only = true});
}

void expect_unchanged_by_reading(const std::filesystem::path& dir,
                                 const std::vector<std::string>& rows) {
  const auto before = everything_of(dir);
  {
    const Opened opened = open_read_only(dir);
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.rows, rows);
    EXPECT_TRUE(opened.journal->archived({}, 10));
  }
  const auto after = everything_of(dir);
  EXPECT_EQ(names_in(dir), [&] {
    std::vector<std::string> names;
    for (const auto& [name, what] : before) names.push_back(name);
    return names;
  }());
  for (const auto& [name, what] : before)
    EXPECT_TRUE(after.contains(name) && after.at(name) == what) << name << " has changed";
}

// With a ballast of 1 MiB, and rows in the WAL that no checkpoint has moved.
struct Written {
  explicit Written(const std::filesystem::path& at) : dir(at) {
    opened = open_journal(options());
    for (const auto& events : {std::vector{started(1), registered("n01", "b1")},
                               {submitted("j1", "one"), ended("j1"), archived("j1", "one")}}) {
      const auto texts = append(*opened.journal, events);
      rows.insert(rows.end(), texts.begin(), texts.end());
    }
  }
  [[nodiscard]] SqliteOptions options() const {
    return {.dir = dir, .ballast_bytes = 1 << 20, .low_space_bytes = 0};
  }
  std::filesystem::path dir;
  Opened opened;
  std::vector<std::string> rows;
};

TEST(ReadOnly, AfterAKillWithEverythingInTheWal) {
  TempDir dir;
  const Written written(dir.path() / "live");
  copy_dir(dir.path() / "live", dir.path() / "killed");
  std::filesystem::remove(dir.path() / "killed" / "journal.db-shm");
  ASSERT_GT(std::filesystem::file_size(dir.path() / "killed" / "journal.db-wal"), 0u);
  expect_unchanged_by_reading(dir.path() / "killed", written.rows);
  // with the index that the dead process had made
  copy_dir(dir.path() / "live", dir.path() / "killed");
  expect_unchanged_by_reading(dir.path() / "killed", written.rows);
}

TEST(ReadOnly, AfterAStopInGoodOrder) {
  TempDir dir;
  Written written(dir.path() / "journal");
  written.opened.journal.reset();
  EXPECT_TRUE(std::filesystem::exists(written.dir / "ballast"));
  expect_unchanged_by_reading(written.dir, written.rows);
  EXPECT_EQ(open_journal(written.options()).rows, written.rows)
      << "and the next start is none the wiser";
}

TEST(ReadOnly, OfABackupOfTheDatabaseAndItsHeadAlone) {
  TempDir dir;
  Written written(dir.path() / "journal");
  written.opened.journal.reset();
  sql(written.dir, "PRAGMA wal_checkpoint(TRUNCATE)");
  const std::filesystem::path backup = dir.path() / "100% of it? #1";  // a path that is no URI
  std::filesystem::create_directory(backup);
  for (const char* file : {"journal.db", "head"})
    std::filesystem::copy_file(written.dir / file, backup / file);
  expect_unchanged_by_reading(backup, written.rows);
  EXPECT_EQ(names_in(backup), (std::vector<std::string>{"head", "journal.db"}));
}

// The new database is complete and not renamed yet.
TEST(ReadOnly, OfAnAcceptedLossThatNoStartHasFinished) {
  TempDir dir;
  Written written(dir.path() / "journal");
  written.opened.journal.reset();
  sql(written.dir, "DELETE FROM rows WHERE idx=4");
  copy_dir(written.dir, dir.path() / "done");
  ASSERT_FALSE(open_journal(dir.path() / "done", true).error);
  sql(dir.path() / "done", "PRAGMA wal_checkpoint(TRUNCATE)");
  sql(dir.path() / "done", "PRAGMA journal_mode=DELETE");
  std::filesystem::copy_file(dir.path() / "done" / "journal.db",
                             written.dir / "journal.db.salvaged");
  expect_unchanged_by_reading(written.dir, {written.rows.begin(), written.rows.begin() + 3});
}

TEST(ReadOnly, ADamagedOneIsRefusedAndStaysAsItIs) {
  TempDir dir;
  Written written(dir.path() / "journal");
  written.opened.journal.reset();
  sql(written.dir, "UPDATE rows SET type=type+1 WHERE idx=4");
  const auto before = everything_of(written.dir);
  for (const bool accept_loss : {false, true}) {
    const Opened opened = open_journal(
        SqliteOptions{.dir = written.dir, .accept_loss = accept_loss, .read_only = true});
    ASSERT_TRUE(opened.error);
    EXPECT_EQ(opened.error->code, ErrorCode::DataLoss);
    EXPECT_EQ(everything_of(written.dir), before);
  }
}

TEST(ReadOnly, NotWithAControllerAndNoControllerWithIt) {
  TempDir dir;
  Written written(dir.path() / "journal");
  const Opened refused = open_read_only(written.dir);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::Conflict);
  EXPECT_THAT(refused.error->message,
              HasSubstr("or somebody else who looks into it has it open; wait for its end, or read "
                        "a copy of the directory"));
  written.opened.journal.reset();
  const Opened reader = open_read_only(written.dir);
  EXPECT_FALSE(reader.error);
  EXPECT_EQ(open_read_only(written.dir).error.value_or(Error{}).code, ErrorCode::Conflict);
  EXPECT_EQ(open_journal(written.options()).error.value_or(Error{}).code, ErrorCode::Conflict);
}

TEST(ReadOnly, WhereThereIsNoneNoneIsMade) {
  TempDir dir;
  const Opened opened = open_read_only(dir.path());
  ASSERT_TRUE(opened.error);
  EXPECT_EQ(opened.error->code, ErrorCode::NotFound);
  EXPECT_TRUE(names_in(dir.path()).empty());
}

}  // namespace
}  // namespace muster::journal
