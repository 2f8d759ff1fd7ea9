// A full disk: the ballast is spent, facts are still accepted, and new jobs must be refused. When
// there is room, the ballast is made again.
#include "controller/journal/ballast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/small_disk.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

using test::SmallDisk;

std::uintmax_t fill(const std::filesystem::path& file) { return test::fill_disk(file); }
constexpr std::uint64_t kMiB = 1 << 20;

bool low(const SqliteJournal& journal) { return !journal.shortage().empty(); }

// Regression: the mark was a new file, for which there was no room. The next start continued from a
// directory that was known to be an old copy.
TEST(Ballast, AFullDiskTakesTheMark) {
  for (const std::uint64_t ballast : {4 * kMiB, std::uint64_t{0}}) {
    TempDir dir;
    SmallDisk disk(dir.path() / "disk", "size=16m");
    if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
    const auto at = dir.path() / "disk" / "journal";
    SqliteOptions options = options_for(at);
    options.ballast_bytes = ballast;
    options.low_space_bytes = 2 * kMiB;
    Opened opened = open_journal(options);
    ASSERT_FALSE(opened.error) << opened.error->message;
    append(*opened.journal, {started(1)});
    fill(dir.path() / "disk" / "other");
    const auto marked = opened.journal->mark_behind("node 'n1' was told up to row 9", 7);
    ASSERT_TRUE(marked) << marked.error().message;
    EXPECT_EQ(std::filesystem::exists(at / "head.before-mark"), ballast != 0)
        << "written over, nothing of the head is left";
    opened.journal.reset();
    opened = open_journal(options);
    ASSERT_FALSE(opened.error) << opened.error->message;
    EXPECT_EQ(opened.journal->behind(), "node 'n1' was told up to row 9");
    EXPECT_EQ(mark_in(at).generation, 7u);
  }
}

TEST(Ballast, LetsFactsFlowOnAFullDisk) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=16m");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto at = dir.path() / "disk" / "journal";
  SqliteOptions options = options_for(at);
  options.ballast_bytes = 4 * kMiB;
  options.low_space_bytes = 2 * kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(std::filesystem::file_size(at / "ballast"), 4 * kMiB);
  EXPECT_FALSE(low(*opened.journal));
  auto written = append(*opened.journal, {started(1)});

  fill(dir.path() / "disk" / "other");
  EXPECT_TRUE(low(*opened.journal));
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto texts = append(*opened.journal, {exited("j1", i, 1)});  // throws when it fails
    written.push_back(texts[0]);
  }
  EXPECT_FALSE(std::filesystem::exists(at / "ballast"));
  EXPECT_TRUE(low(*opened.journal));

  // Killed on the full disk, and started on the full disk: it still loads, and reports that there
  // is no room for the ballast.
  opened.journal.reset();
  fill(dir.path() / "disk" / "other");
  std::filesystem::resize_file(
      dir.path() / "disk" / "other",
      std::filesystem::file_size(dir.path() / "disk" / "other") - 256 * 1'024);
  opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(opened.rows, written);
  ASSERT_EQ(opened.journal->notices().size(), 1u);
  EXPECT_THAT(
      opened.journal->notices()[0],
      testing::HasSubstr("the disk is nearly full; new jobs are refused until there is room"));
  EXPECT_TRUE(low(*opened.journal));

  std::filesystem::remove(dir.path() / "disk" / "other");
  EXPECT_FALSE(low(*opened.journal)) << "there is room for the ballast and the mark";
  append(*opened.journal, {exited("j1", 999, 1)});
  EXPECT_EQ(std::filesystem::file_size(at / "ballast"), 4 * kMiB);
  EXPECT_FALSE(low(*opened.journal));
}

TEST(Ballast, SpentAndStillFullIsAFinalError) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=8m");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  SqliteOptions options = options_for(dir.path() / "disk" / "journal");
  options.ballast_bytes = kMiB;
  options.low_space_bytes = kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  fill(dir.path() / "disk" / "other");
  std::optional<Error> error;
  std::vector<std::string> written;
  for (std::uint32_t i = 0; i < 10'000 && !error; ++i) {
    core::Event event = exited("j1", i, 1);
    std::get<core::RankExited>(event.body).evidence.assign(8'192, 'x');
    const Row row{.index = JournalIndex(opened.journal->last().value + 1), .event = event};
    auto done = opened.journal->append({&row, 1});
    if (done)
      written.push_back(text_of(row));
    else
      error = done.error();
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(error->message, testing::HasSubstr("database or disk is full"));
  EXPECT_GT(written.size(), 50u);
  const Row row{.index = JournalIndex(opened.journal->last().value + 1), .event = started(9)};
  EXPECT_FALSE(opened.journal->append({&row, 1})) << "after a failed append nothing more is taken";
  opened.journal.reset();
  std::filesystem::remove(dir.path() / "disk" / "other");
  EXPECT_EQ(open_journal(options).rows, written);
}

// Regression: after a full disk, submissions stayed refused although there was room, until the next
// append; while nothing runs, there is no append. The ballast is made again without an append as
// well.
TEST(Ballast, AShortageIsOverWithTheFullDisk) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=16m");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto at = dir.path() / "disk" / "journal";
  SqliteOptions options = options_for(at);
  options.ballast_bytes = 4 * kMiB;
  options.low_space_bytes = 2 * kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  append(*opened.journal, {started(1)});
  fill(dir.path() / "disk" / "other");
  for (std::uint32_t i = 0; std::filesystem::exists(at / "ballast") && i < 2'000; ++i)
    append(*opened.journal, {exited("j1", i, 1)});
  ASSERT_FALSE(std::filesystem::exists(at / "ballast")) << "spent";
  EXPECT_EQ(opened.journal->shortage(), "the controller's disk is nearly full");
  opened.journal->restore_ballast();
  EXPECT_FALSE(std::filesystem::exists(at / "ballast"));

  std::filesystem::resize_file(dir.path() / "disk" / "other",
                               std::filesystem::file_size(dir.path() / "disk" / "other") - kMiB);
  EXPECT_TRUE(low(*opened.journal)) << "room for the mark, but not for the ballast beside it";
  std::filesystem::remove(dir.path() / "disk" / "other");
  EXPECT_FALSE(low(*opened.journal));
  opened.journal->restore_ballast();
  EXPECT_EQ(std::filesystem::file_size(at / "ballast"), 4 * kMiB);
}

// Regression: only bytes were checked. A disk without free inodes accepted jobs whose logs it could
// not store, and no start could replace the journal's head.
TEST(Ballast, ADiskWithoutInodesIsFull) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=16m,nr_inodes=400");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto at = dir.path() / "disk" / "journal";
  SqliteOptions options = options_for(at);
  options.ballast_bytes = 4 * kMiB;
  options.low_space_bytes = 2 * kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(opened.journal->shortage(), "");
  std::filesystem::create_directory(dir.path() / "disk" / "other");
  for (int i = 0; i < 200; ++i)
    std::ofstream(dir.path() / "disk" / "other" / std::to_string(i)) << "x";
  EXPECT_THAT(
      opened.journal->shortage(),
      testing::MatchesRegex("the controller's disk has [0-9]+ inodes left \\('df -i' shows it\\)"));
  std::filesystem::remove_all(dir.path() / "disk" / "other");
  EXPECT_EQ(opened.journal->shortage(), "");
}

// Regression: a ballast that could not be made because no inode was left ended the start.
TEST(Ballast, AStartGoesOnWithoutABallastForWantOfAnInode) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=16m,nr_inodes=64");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  Ballast ballast(dir.path() / "disk", kMiB, kMiB);
  std::size_t made = 0;
  while (std::ofstream(dir.path() / "disk" / std::to_string(made)) << "x") ++made;
  const auto refused = ballast.restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted) << refused.error().message;
}

// Regression: a file system whose free space was unknown counted as one with unlimited space.
TEST(Ballast, RoomThatNobodyCanTellIsNone) {
  TempDir dir;
  Ballast ballast(dir.path() / "gone", kMiB, kMiB);
  EXPECT_THAT(ballast.shortage(),
              testing::HasSubstr("is unknown (reading how much room is left at '"));
  const auto refused = ballast.restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted) << "a start goes on without it";
}

// Regression: nothing of the disk was free, and 64 MiB of it were in the ballast. The start ended
// at the journal's head, before it checked the ballast.
TEST(Ballast, AStartOnAFullDiskSpendsIt) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "size=16m");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto at = dir.path() / "disk" / "journal";
  SqliteOptions options = options_for(at);
  options.ballast_bytes = 4 * kMiB;
  options.low_space_bytes = 2 * kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  auto written = append(*opened.journal, {started(1)});
  opened.journal.reset();
  ASSERT_TRUE(std::filesystem::exists(at / "ballast"));
  fill(dir.path() / "disk" / "other");
  opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  written.push_back(append(*opened.journal, {started(2)})[0]);
  EXPECT_TRUE(low(*opened.journal));
  opened.journal.reset();
  EXPECT_EQ(open_journal(options).rows, written);
}

TEST(Ballast, ShrinksAndGoesWithItsOption) {
  TempDir dir;
  const auto size = [&] {
    return std::filesystem::exists(dir.path() / "ballast")
               ? std::filesystem::file_size(dir.path() / "ballast")
               : 0;
  };
  for (const std::uint64_t wanted : {2 * kMiB, 3 * kMiB, 1 * kMiB, std::uint64_t{0}}) {
    Ballast ballast(dir.path(), wanted, 0);
    ASSERT_TRUE(ballast.restore());
    EXPECT_EQ(size(), wanted);
    EXPECT_EQ(ballast.shortage(), "");
  }
  Ballast greedy(dir.path(), 1ull << 60, 0);
  const auto refused = greedy.restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(size(), 0u);
  EXPECT_EQ(greedy.shortage(), "the controller's disk is nearly full");
}

}  // namespace
}  // namespace muster::journal
