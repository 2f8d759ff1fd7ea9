// The cache of inputs alone: its index is damaged, others use it at the same time, room is made.
#include "agent/stage/input_cache.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

#include "common/digest/sha256.h"

namespace muster::agent {
namespace {

using sqlite::Database;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class InputCacheTest : public testing::Test {
 protected:
  InputCacheTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-cache-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~InputCacheTest() override { std::filesystem::remove_all(dir_); }

  [[nodiscard]] std::filesystem::path root() const { return dir_ / "inputs"; }
  [[nodiscard]] std::filesystem::path index() const { return root() / "cache/index.db"; }
  [[nodiscard]] std::filesystem::path object(const std::string& text) const {
    const std::string sha256 = sha256_hex(text);
    return root() / "cache/objects" / sha256.substr(0, 2) / sha256;
  }
  static WallTime at(int seconds) { return WallTime(std::chrono::seconds(seconds)); }

  InputCache open() const {
    auto cache = InputCache::open(root());
    if (!cache) throw std::runtime_error(cache.error().message);
    return *std::move(cache);
  }
  std::unique_ptr<Database> open_index() const {
    auto index_of =
        Database::open(index(), Database::Mode::Write, "index", std::chrono::minutes(1));
    if (!index_of) throw std::runtime_error(index_of.error().message);
    return *std::move(index_of);
  }
  // The key is the text.
  Result<void> put(InputCache& cache, const std::string& text, int second = 1) const {
    const std::filesystem::path file = dir_ / sha256_hex("file " + text);
    std::ofstream(file) << text;
    const InputCache::Fetched fetched{.key = text, .sha256 = sha256_hex(text), .file = file};
    return cache.put({&fetched, 1}, at(second));
  }
  static bool has(InputCache& cache, const std::string& text) {
    const auto found = cache.find(text, at(100), {});
    return found && *found;
  }
  // A file below objects/ alone.
  void leave_behind(const std::string& text) const {
    std::filesystem::create_directories(object(text).parent_path());
    std::ofstream(object(text)) << text;
  }
  [[nodiscard]] std::uint64_t blocks(const std::string& text) const {
    struct stat status{};
    return ::stat(object(text).c_str(), &status) == 0
               ? static_cast<std::uint64_t>(status.st_blocks) * 512
               : 0;
  }
  [[nodiscard]] ino_t inode(const std::string& text) const {
    struct stat status{};
    return ::stat(object(text).c_str(), &status) == 0 ? status.st_ino : 0;
  }
  // All pages but the first, which has the tables. Nobody has it open, so its WAL is in the file,
  // too, but SQLite would read what is still in the WAL there.
  void damage_index() const {
    for (const char* end : {"-wal", "-shm"}) std::filesystem::remove(index().native() + end);
    const auto size = std::filesystem::file_size(index());
    std::fstream file(index(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(size - 4096, '\xff');
  }

  std::filesystem::path dir_;
};

TEST_F(InputCacheTest, ManyAtOnceAreOneTransaction) {
  InputCache cache = open();
  std::vector<InputCache::Fetched> files;
  for (int i = 0; i < 40; ++i) {
    const std::string text = fmt::format("text {}", i / 2);  // each is there twice
    files.push_back({.key = fmt::format("key {}", i),
                     .sha256 = sha256_hex(text),
                     .file = dir_ / fmt::format("file {}", i)});
    std::ofstream(files.back().file) << text;
  }
  std::filesystem::remove(files.back().file);
  EXPECT_FALSE(cache.put(files, at(1)));
  EXPECT_FALSE(has(cache, "key 0")) << "one could not be moved";
  files.pop_back();
  ASSERT_TRUE(cache.put(files, at(1)));
  for (const InputCache::Fetched& one : files) {
    EXPECT_TRUE(has(cache, one.key)) << one.key;
    EXPECT_FALSE(std::filesystem::exists(one.file)) << one.key;
  }
}

// --- a damaged index -----------------------------------------------------------------------------
TEST_F(InputCacheTest, ADamagedPageIsNoticedAndTheIndexIsMadeAnew) {
  {
    InputCache cache = open();
    ASSERT_TRUE(put(cache, "text"));
    EXPECT_TRUE(has(cache, "text"));
    EXPECT_FALSE(cache.is_damaged());
  }
  damage_index();
  InputCache cache = open();
  EXPECT_FALSE(cache.is_damaged()) << "nothing was read yet";
  const auto found = cache.find("text", at(2), {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::DataLoss);
  EXPECT_TRUE(cache.is_damaged());
  auto anew = InputCache::remake(root());
  ASSERT_TRUE(anew) << anew.error().message;
  cache = *std::move(anew);
  EXPECT_FALSE(cache.is_damaged());
  EXPECT_FALSE(has(cache, "text"));
  ASSERT_TRUE(put(cache, "text"));
  EXPECT_TRUE(has(cache, "text")) << "the object was there";
}

TEST_F(InputCacheTest, ASoundIndexIsNotMadeAnew) {
  InputCache cache = open();
  ASSERT_TRUE(put(cache, "text"));
  auto again = InputCache::remake(root());
  ASSERT_TRUE(again);
  EXPECT_TRUE(has(*again, "text"));
}

TEST_F(InputCacheTest, AnIndexOfOtherTablesIsMadeAnew) {
  (void)open();
  std::filesystem::remove(index());
  {
    auto other = open_index();
    ASSERT_TRUE(other->execute("CREATE TABLE objects(sha256 TEXT, size INTEGER)"));
  }
  InputCache cache = open();
  ASSERT_TRUE(put(cache, "text"));
  EXPECT_TRUE(has(cache, "text"));
}

// A row has no entry in an index of its table: each page is sound, and they do not fit together.
TEST_F(InputCacheTest, PartsThatDoNotFitTogetherAreADamage) {
  {
    InputCache cache = open();
    ASSERT_TRUE(put(cache, "text"));
  }
  ASSERT_TRUE(open_index()->execute(
      "CREATE TABLE saved AS SELECT * FROM sqlite_schema WHERE name = 'objects_used';"
      "PRAGMA writable_schema=ON; DELETE FROM sqlite_schema WHERE name = 'objects_used'"));
  ASSERT_TRUE(open_index()->execute(
      "INSERT INTO objects VALUES('other', 0, 0, 0, 0, 0);"
      "PRAGMA writable_schema=ON; INSERT INTO sqlite_schema SELECT * FROM saved"));
  auto cache = InputCache::remake(root());
  ASSERT_TRUE(cache) << cache.error().message;
  EXPECT_FALSE(has(*cache, "text"));
  EXPECT_TRUE(put(*cache, "text"));
}

TEST_F(InputCacheTest, ManyStartsThatSeeTheDamageMakeOneNewIndex) {
  {
    InputCache cache = open();
    ASSERT_TRUE(put(cache, "text"));
  }
  damage_index();
  std::vector<InputCache> caches;
  for (int i = 0; i < 8; ++i) caches.push_back(open());
  std::vector<std::thread> starts;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i)
    starts.emplace_back([&, i] {
      if (caches[i].find("text", at(2), {}) || !caches[i].is_damaged()) ++wrong;
      auto anew = InputCache::remake(root());
      if (anew) caches[i] = *std::move(anew);
      if (!put(caches[i], fmt::format("text {}", i))) ++wrong;
    });
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(wrong, 0);
  InputCache cache = open();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(has(cache, fmt::format("text {}", i))) << i;
}

// --- several at the same time --------------------------------------------------------------------
TEST_F(InputCacheTest, ManyOpenItAtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    std::filesystem::remove_all(root());
    std::vector<std::thread> starts;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 8; ++i)
      starts.emplace_back([&, i] {
        auto cache = InputCache::open(root());
        if (!cache) {
          ++wrong;
          ADD_FAILURE() << cache.error().message;
        } else if (!put(*cache, fmt::format("{}", i))) {
          ++wrong;
        }
      });
    for (std::thread& start : starts) start.join();
    ASSERT_EQ(wrong, 0) << round;
  }
}

TEST_F(InputCacheTest, OpeningWaitsForWhoHasTheIndexLocked) {
  (void)open();
  std::filesystem::remove(index());
  auto other = open_index();
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
  auto opening = std::async(std::launch::async, [&] { return InputCache::open(root()); });
  EXPECT_EQ(opening.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  other->rollback();
  const auto cache = opening.get();
  EXPECT_TRUE(cache) << cache.error().message;
}

// SQLite's locks are fcntl(2): the process loses them when it closes any descriptor of the file.
TEST_F(InputCacheTest, AnotherConnectionOfTheProcessLeavesTheLocks) {
  const InputCache first = open(), second = open();
  struct stat status{};
  ASSERT_EQ(::stat(index().c_str(), &status), 0);
  const std::string shared_lock = " " + std::to_string(::getpid()) + " ",
                    of_index = ":" + std::to_string(status.st_ino) + " 1073741826 ";
  std::ifstream locks("/proc/locks");  // proc(5)
  bool has_lock = false;
  for (std::string line; std::getline(locks, line);)
    has_lock = has_lock ||
               (line.contains(" READ ") && line.contains(shared_lock) && line.contains(of_index));
  EXPECT_TRUE(has_lock);
}

TEST_F(InputCacheTest, AnObjectIsNeverThereWithoutItsRow) {
  InputCache cache = open();
  auto other = open_index();
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE"));
  auto putting = std::async(std::launch::async, [&] { return bool(put(cache, "text")); });
  EXPECT_EQ(putting.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_FALSE(std::filesystem::exists(object("text")));
  other->rollback();
  EXPECT_TRUE(putting.get());
  EXPECT_TRUE(has(cache, "text"));
}

// --- room ----------------------------------------------------------------------------------------
TEST_F(InputCacheTest, WhatTheIndexDoesNotKnowGoesFirst) {
  InputCache cache = open();
  ASSERT_TRUE(put(cache, "known"));
  leave_behind("unknown");
  leave_behind("in use");
  leave_behind("kept");
  std::filesystem::create_hard_link(object("in use"), dir_ / "in use");
  const auto freed = cache.make_room(1, {sha256_hex("kept")});
  ASSERT_TRUE(freed);
  EXPECT_GT(*freed, 0U);
  EXPECT_FALSE(std::filesystem::exists(object("unknown")));
  for (const char* text : {"known", "in use", "kept"})
    EXPECT_TRUE(std::filesystem::exists(object(text))) << text;
  EXPECT_TRUE(has(cache, "known"));
}

TEST_F(InputCacheTest, AfterANewIndexTheObjectsCanGo) {
  {
    InputCache cache = open();
    ASSERT_TRUE(put(cache, "text"));
  }
  std::filesystem::remove(index());
  InputCache cache = open();
  const std::uint64_t bytes = blocks("text");
  const auto freed = cache.make_room(bytes, {});
  ASSERT_TRUE(freed);
  EXPECT_EQ(*freed, bytes);
  EXPECT_FALSE(std::filesystem::exists(object("text")));
}

TEST_F(InputCacheTest, TheLeastRecentlyUsedGoesAndWhatIsKeptStays) {
  InputCache cache = open();
  // In another order than that of their digests.
  std::vector<std::string> texts;
  for (const char letter : {'a', 'b', 'c'}) texts.emplace_back(100'000, letter);
  std::ranges::sort(texts, std::ranges::greater(), [](const auto& one) { return sha256_hex(one); });
  const std::string &oldest = texts[0], &older = texts[1], &newest = texts[2];
  ASSERT_TRUE(put(cache, oldest, 1));
  ASSERT_TRUE(put(cache, older, 2));
  ASSERT_TRUE(put(cache, newest, 3));
  const auto freed = cache.make_room(1, {sha256_hex(oldest)});
  ASSERT_TRUE(freed);
  EXPECT_GE(*freed, 100'000U);
  EXPECT_LT(*freed, 200'000U);
  EXPECT_TRUE(has(cache, oldest));
  EXPECT_FALSE(has(cache, older));
  EXPECT_TRUE(has(cache, newest));
}

TEST_F(InputCacheTest, NothingIsRemovedForWhatCannotFit) {
  InputCache cache = open();
  const std::string text(100'000, 'a'), needed(100'000, 'b');
  ASSERT_TRUE(put(cache, text));
  ASSERT_TRUE(put(cache, needed));
  leave_behind("unknown");
  const std::uint64_t could = blocks(text) + blocks("unknown");
  auto freed = cache.make_room(could + 1, {sha256_hex(needed)});
  ASSERT_TRUE(freed);
  EXPECT_EQ(*freed, 0U);
  EXPECT_TRUE(has(cache, text));
  EXPECT_TRUE(std::filesystem::exists(object("unknown")));
  freed = cache.make_room(could, {sha256_hex(needed)});
  ASSERT_TRUE(freed);
  EXPECT_EQ(*freed, could);
}

TEST_F(InputCacheTest, BlocksOnTheDiskCountAndNotTheSize) {
  InputCache cache = open();
  ASSERT_TRUE(put(cache, "text"));
  leave_behind("holes");
  ASSERT_EQ(::truncate(object("holes").c_str(), 1LL << 30), 0);
  const auto freed = cache.make_room(1 << 29, {});
  ASSERT_TRUE(freed);
  EXPECT_EQ(*freed, 0U);
  EXPECT_TRUE(std::filesystem::exists(object("holes")));
}

// --- whose it is ---------------------------------------------------------------------------------
TEST_F(InputCacheTest, WhereOthersMayWriteIsRefused) {
  (void)open();
  std::filesystem::create_directory(root() / "jobs");
  const auto code_with = [&](const std::filesystem::path& dir, mode_t mode) {
    EXPECT_EQ(::chmod(dir.c_str(), mode), 0);
    const auto cache = InputCache::open(root());
    EXPECT_EQ(::chmod(dir.c_str(), 0711), 0);
    if (cache) return std::optional<ErrorCode>();
    EXPECT_THAT(cache.error().message, HasSubstr("'" + dir.native() + "'"));
    return std::optional(cache.error().code);
  };
  for (const auto& dir : {root(), root() / "cache", root() / "jobs"}) {
    EXPECT_EQ(code_with(dir, 0755), std::nullopt) << dir;
    EXPECT_EQ(code_with(dir, 0711), std::nullopt) << dir;
    EXPECT_EQ(code_with(dir, 0775), ErrorCode::NotAllowed) << dir;
    EXPECT_EQ(code_with(dir, 0777), ErrorCode::NotAllowed) << dir;
    EXPECT_EQ(code_with(dir, 01757), ErrorCode::NotAllowed) << dir;
  }
}

TEST_F(InputCacheTest, LinksAndFilesInItsPlaceAreRefused) {
  (void)open();
  std::filesystem::create_directory(root() / "jobs");
  for (const auto& dir : {root() / "jobs", root() / "cache", root()}) {
    std::filesystem::rename(dir, dir_ / "moved");
    std::filesystem::create_symlink(dir_ / "moved", dir);
    const auto cache = InputCache::open(root());
    ASSERT_FALSE(cache) << dir;
    EXPECT_EQ(cache.error().code, ErrorCode::NotAllowed);
    EXPECT_THAT(cache.error().message,
                HasSubstr("'" + dir.native() + "' for inputs: it is a link"));
    std::filesystem::remove(dir);
    std::filesystem::rename(dir_ / "moved", dir);
  }
}

TEST_F(InputCacheTest, WhatBelongsToSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  (void)open();
  std::filesystem::create_directory(root() / "jobs");
  for (const auto& dir : {root() / "jobs", root() / "cache", root()}) {
    ASSERT_EQ(::chown(dir.c_str(), 1, 1), 0);
    const auto cache = InputCache::open(root());
    ASSERT_FALSE(cache) << dir;
    EXPECT_EQ(cache.error().code, ErrorCode::NotAllowed);
    EXPECT_THAT(cache.error().message, HasSubstr("it belongs to user 1"));
    ASSERT_EQ(::chown(dir.c_str(), 0, 0), 0);
  }
}

// --- what changes a file -------------------------------------------------------------------------
// The 1,400th cannot be noted. A thousand before it are noted all the same: each transaction is of
// so many at most.
TEST_F(InputCacheTest, ManyFilesAreNotedInSeveralTransactions) {
  InputCache cache = open();
  auto other = open_index();
  std::vector<ino_t> inodes;
  ASSERT_TRUE(other->execute("BEGIN"));
  for (int i = 0; i < 1500; ++i) {
    const std::string text = fmt::format("{}", i);
    leave_behind(text);
    struct stat status{};
    ASSERT_EQ(::stat(object(text).c_str(), &status), 0);
    const auto mtime = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    ASSERT_TRUE(other->execute(fmt::format("INSERT INTO objects VALUES('{}', {}, {}, {}, 0, 0)",
                                           sha256_hex(text), text.size(), status.st_ino, mtime)
                                   .c_str()));
    inodes.push_back(status.st_ino);
  }
  ASSERT_TRUE(other->execute(fmt::format("CREATE TRIGGER never BEFORE UPDATE ON objects WHEN "
                                         "OLD.sha256 = '{}' BEGIN SELECT RAISE(ABORT, 'no'); END; "
                                         "COMMIT",
                                         sha256_hex("1400"))
                                 .c_str()));
  EXPECT_FALSE(cache.note_inodes(inodes));
  auto noted = other->prepare("SELECT count(*) FROM objects WHERE ctime > 0");
  ASSERT_TRUE(noted && *noted->step());
  EXPECT_EQ(noted->number(0), 1000);
}

// The clock of a file system is coarse.
void wait_for_another_ctime(const std::filesystem::path& file) {
  struct stat first{}, now{};
  std::ofstream(file) << 1;
  ASSERT_EQ(::stat(file.c_str(), &first), 0);
  do {
    std::ofstream(file) << 2;
    ASSERT_EQ(::stat(file.c_str(), &now), 0);
  } while (now.st_ctim.tv_nsec == first.st_ctim.tv_nsec &&
           now.st_ctim.tv_sec == first.st_ctim.tv_sec);
}

TEST_F(InputCacheTest, AWriteWithTheOldMtimeIsSeenBeforeLinksAreRemoved) {
  InputCache cache = open();
  for (const char* text : {"good", "evil"}) {
    ASSERT_TRUE(put(cache, text));
    std::filesystem::create_hard_link(object(text), dir_ / text);
  }
  const std::vector<ino_t> both = {inode("good"), inode("evil")};
  ASSERT_TRUE(cache.note_inodes(both));
  ASSERT_TRUE(cache.unchanged(both));
  EXPECT_EQ(*cache.unchanged(both), both);

  struct stat before{};
  ASSERT_EQ(::stat(object("evil").c_str(), &before), 0);
  wait_for_another_ctime(dir_ / "clock");
  ASSERT_EQ(::chmod(object("evil").c_str(), 0644), 0);
  std::ofstream(dir_ / "evil") << "live";
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, object("evil").c_str(), times, 0), 0);

  const auto unchanged = cache.unchanged(both);
  ASSERT_TRUE(unchanged);
  EXPECT_THAT(*unchanged, ElementsAre(inode("good")));
  for (const char* text : {"good", "evil"}) std::filesystem::remove(dir_ / text);
  ASSERT_TRUE(cache.note_inodes(*unchanged));
  EXPECT_EQ(*cache.unchanged(both), *unchanged);
  EXPECT_TRUE(has(cache, "good"));
  EXPECT_FALSE(has(cache, "evil")) << "it was read, and removed";
  EXPECT_FALSE(std::filesystem::exists(object("evil")));
  EXPECT_THAT(*cache.unchanged({::ino_t{1}}), IsEmpty());
}

}  // namespace
}  // namespace muster::agent
