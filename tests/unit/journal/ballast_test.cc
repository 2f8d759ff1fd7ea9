// A full disk: the ballast goes, facts still flow, new jobs are to be refused; it comes back with the room.
#include "controller/journal/ballast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

// A file system of its own, so that it can be full.
class SmallDisk {
 public:
  SmallDisk(const std::filesystem::path& at, const std::string& size) : at_(at) {
    std::filesystem::create_directory(at);
    mounted_ = ::mount("muster-test", at.c_str(), "tmpfs", 0, ("size=" + size + ",mode=0700").c_str()) == 0;
    error_ = errno;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount(at_.c_str());
  }
  [[nodiscard]] std::string problem() const { return mounted_ ? "" : std::string("cannot mount a tmpfs here (needs root): ") + std::strerror(error_); }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
  int error_ = 0;
};

// Writes until there is no room; the file's size.
std::uintmax_t fill(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  const std::string block(4'096, 'x');
  while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
  out.close();
  return std::filesystem::file_size(file);
}

constexpr std::uint64_t kMiB = 1 << 20;

// The mark was a new file, for which there was no room: the next start went on from a copy that was known to be one.
TEST(Ballast, AFullDiskTakesTheMark) {
  for (const std::uint64_t ballast : {4 * kMiB, std::uint64_t{0}}) {
    TempDir dir;
    SmallDisk disk(dir.path() / "disk", "16m");
    if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
    const auto at = dir.path() / "disk" / "journal";
    SqliteOptions options = options_for(at);
    options.ballast_bytes = ballast;
    options.low_space_bytes = 2 * kMiB;
    Opened opened = open_journal(options);
    ASSERT_FALSE(opened.error) << opened.error->message;
    append(*opened.journal, {started(1)});
    fill(dir.path() / "disk" / "other");
    const auto marked = opened.journal->mark_behind("node 'n1' was told up to row 9");
    ASSERT_TRUE(marked) << marked.error().message;
    EXPECT_EQ(std::filesystem::exists(at / "head.before-mark"), ballast != 0) << "written over, nothing of the head is left";
    opened.journal.reset();
    opened = open_journal(options);
    ASSERT_TRUE(opened.error);
    EXPECT_THAT(opened.error->message, testing::HasSubstr("node 'n1' was told up to row 9"));
  }
}

TEST(Ballast, LetsFactsFlowOnAFullDisk) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "16m");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto at = dir.path() / "disk" / "journal";
  SqliteOptions options = options_for(at);
  options.ballast_bytes = 4 * kMiB;
  options.low_space_bytes = 2 * kMiB;
  Opened opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(std::filesystem::file_size(at / "ballast"), 4 * kMiB);
  EXPECT_FALSE(opened.journal->low_on_space());
  auto written = append(*opened.journal, {started(1)});

  fill(dir.path() / "disk" / "other");
  EXPECT_TRUE(opened.journal->low_on_space());
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto texts = append(*opened.journal, {exited("j1", i, 1)});  // throws when it fails
    written.push_back(texts[0]);
  }
  EXPECT_FALSE(std::filesystem::exists(at / "ballast"));
  EXPECT_TRUE(opened.journal->low_on_space());

  // Killed on the full disk, started on the full disk: it still loads, and says that there is no room for the ballast.
  opened.journal.reset();
  fill(dir.path() / "disk" / "other");
  std::filesystem::resize_file(dir.path() / "disk" / "other", std::filesystem::file_size(dir.path() / "disk" / "other") - 256 * 1'024);
  opened = open_journal(options);
  ASSERT_FALSE(opened.error) << opened.error->message;
  EXPECT_EQ(opened.rows, written);
  ASSERT_EQ(opened.journal->notices().size(), 1u);
  EXPECT_THAT(opened.journal->notices()[0], testing::HasSubstr("the disk is nearly full; new jobs are refused until there is room"));
  EXPECT_TRUE(opened.journal->low_on_space());

  std::filesystem::remove(dir.path() / "disk" / "other");
  EXPECT_TRUE(opened.journal->low_on_space()) << "until the ballast is back";
  append(*opened.journal, {exited("j1", 999, 1)});
  EXPECT_EQ(std::filesystem::file_size(at / "ballast"), 4 * kMiB);
  EXPECT_FALSE(opened.journal->low_on_space());
}

TEST(Ballast, SpentAndStillFullIsAFinalError) {
  TempDir dir;
  SmallDisk disk(dir.path() / "disk", "8m");
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

TEST(Ballast, ShrinksAndGoesWithItsOption) {
  TempDir dir;
  const auto size = [&] { return std::filesystem::exists(dir.path() / "ballast") ? std::filesystem::file_size(dir.path() / "ballast") : 0; };
  for (const std::uint64_t wanted : {2 * kMiB, 3 * kMiB, 1 * kMiB, std::uint64_t{0}}) {
    Ballast ballast(dir.path(), wanted, 0);
    ASSERT_TRUE(ballast.restore());
    EXPECT_EQ(size(), wanted);
    EXPECT_FALSE(ballast.low());
  }
  Ballast greedy(dir.path(), 1ull << 60, 0);
  const auto refused = greedy.restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(size(), 0u);
  EXPECT_TRUE(greedy.low());
}

}  // namespace
}  // namespace muster::journal
