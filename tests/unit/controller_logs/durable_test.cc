// What survives a power loss, and what is reported about it.

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "common/io/unique_fd.h"
#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

using DurableTest = LogStoreTest;

TEST_F(DurableTest, synced_is_reported_after_a_sync) {
  EXPECT_EQ(append(0, "abc").synced, 0u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(store_->state(key_)->synced, 3u);
  EXPECT_EQ(append(3, "def").synced, 3u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(synced(), std::vector<LogKey>{});
  reopen();
  EXPECT_EQ(store_->state(key_)->synced, 0u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_}) << "opened again, nobody knows";
}

// Regression: a log counted as complete here as soon as its end had arrived. The node deleted the
// only other copy, and a power cut of the controller's host in the next two seconds lost bytes that
// nobody had any more. The end mark may also not be on the disk before the bytes, because a reader
// trusts it.
TEST_F(DurableTest, a_log_is_durable_when_its_bytes_and_then_its_end_are_synced) {
  append(0, "abc");
  const LogState ended = store_->finish(key_, 3).value();
  EXPECT_TRUE(ended.complete) << "who follows the log need not wait for the disk";
  EXPECT_FALSE(ended.durable);
  reopen();
  EXPECT_FALSE(store_->state(key_)->complete) << "its sender says it again";
  ASSERT_TRUE(store_->finish(key_, 3).has_value());
  const Synced done = store_->sync();
  ASSERT_EQ(done.logs.size(), 1u);
  EXPECT_TRUE(done.logs[0].second.durable);
  EXPECT_EQ(done.logs[0].second.synced, 3u);
  EXPECT_TRUE(store_->finish(key_, 3)->durable) << "said once more";
  reopen();
  const LogState after = store_->state(key_).value();
  EXPECT_TRUE(after.durable && after.complete);
  EXPECT_EQ(after.synced, 3u);
  EXPECT_EQ(synced(), std::vector<LogKey>{});
}

TEST_F(DurableTest, an_end_behind_synced_bytes_is_synced_as_well) {
  append(0, "abc");
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_FALSE(store_->finish(key_, 3)->durable);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_TRUE(store_->state(key_)->durable);
  const LogKey empty{JobId("job"), AttemptNo(1), RankNo(1)};
  EXPECT_FALSE(store_->finish(empty, 0)->durable);
  EXPECT_EQ(synced(), std::vector<LogKey>{empty});
  reopen();
  EXPECT_TRUE(store_->state(empty)->durable);
}

// Regression: the first log that could not be synced made all others of that round fail. Nobody
// ever synced them, unless more bytes arrived.
TEST_F(DurableTest, one_log_that_cannot_be_synced_holds_up_no_other_and_is_tried_again) {
  const LogKey bad{JobId("a"), AttemptNo(1), RankNo(0)}, good{JobId("b"), AttemptNo(1), RankNo(0)};
  ASSERT_TRUE(store_->append(bad, 0, "abc", {}).has_value());
  ASSERT_TRUE(store_->append(good, 0, "abc", {}).has_value());
  // Opens so many other logs that its descriptor is closed; now it cannot be opened again.
  for (std::uint32_t rank = 0; rank < 300; ++rank)
    ASSERT_TRUE(store_->state({JobId("c"), AttemptNo(1), RankNo(rank)}).has_value());
  const std::filesystem::path log = root() / "a" / "1" / "rank-0.log";
  std::filesystem::rename(log, dir_.path() / "aside");
  std::filesystem::create_directory(log);
  const Synced first = store_->sync();
  ASSERT_TRUE(first.error.has_value());
  EXPECT_NE(first.error->message.find(log.string()), std::string::npos) << first.error->message;
  ASSERT_EQ(first.logs.size(), 1u);
  EXPECT_EQ(first.logs[0].first, good);
  std::filesystem::remove(log);
  std::filesystem::rename(dir_.path() / "aside", log);
  EXPECT_EQ(synced(), std::vector<LogKey>{bad});
  EXPECT_EQ(store_->state(bad)->synced, 3u);
}

// Regression: with one sync after the other, a thousand short jobs' logs became durable later than
// the next thousand jobs ended. Nodes kept more and more runs, and every scan of them cost more.
TEST_F(DurableTest, many_logs_are_synced_side_by_side) {
  constexpr std::uint32_t kMany = 64;
  std::mutex mutex;
  std::condition_variable news;
  std::size_t inside = 0, most = 0;
  bool waited = false;
  calls_.file = [&](int fd) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++inside);
    news.notify_all();
    if (most < 2 && !std::exchange(waited, true))
      news.wait_for(lock, std::chrono::seconds(10), [&] { return most >= 2; });
    --inside;
    lock.unlock();
    return ::fdatasync(fd);
  };
  reopen();
  std::vector<LogKey> keys;
  for (std::uint32_t rank = 0; rank < kMany; ++rank) {
    keys.push_back({JobId("job"), AttemptNo(1), RankNo(rank)});
    ASSERT_TRUE(store_->append(keys.back(), 0, "abc", {}).has_value());
    ASSERT_TRUE(store_->finish(keys.back(), 3).has_value());
  }
  const Synced done = store_->sync();
  EXPECT_FALSE(done.error);
  EXPECT_GE(most, 2u);
  std::vector<LogKey> durable;
  for (const auto& [key, state] : done.logs) {
    if (state.durable) durable.push_back(key);
  }
  EXPECT_EQ(durable, keys) << "each once, in order";
  EXPECT_EQ(synced(), std::vector<LogKey>{});
}

// A disk whose syncs fail `left` times: all syncs, or those of files whose names end with `only`.
class FailingDisk {
 public:
  SyncCalls calls() {
    return {.file =
                [this](int fd) {
                  const std::string path = path_of(fd);
                  if (!path.ends_with(only)) return ::fdatasync(fd);
                  ++asked;
                  if (left == 0) return ::fdatasync(fd);
                  --left;
                  errno = EIO;
                  return -1;
                },
            .folder =
                [this](int fd) {
                  folders.insert(path_of(fd));
                  return ::fsync(fd);
                }};
  }
  std::string only;
  int left = 0, asked = 0;
  std::set<std::string> folders;

 private:
  static std::string path_of(int fd) {
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string();
  }
};

// The kernel reports a write that the disk refused once for each open file, and forgets the bytes.
// Regression: the next sync of the same open file succeeded, the log counted as durable, and the
// node deleted the only good copy.
TEST_F(DurableTest, what_a_failed_sync_did_not_take_is_wanted_again) {
  FailingDisk disk;
  calls_ = disk.calls();
  reopen();
  append(0, "abc");
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  append(3, "def");
  ASSERT_TRUE(store_->finish(key_, 6)->complete);
  disk.left = 1;
  const Synced failed = store_->sync();
  ASSERT_TRUE(failed.error.has_value());
  EXPECT_NE(failed.error->message.find(file(".log").string()), std::string::npos)
      << failed.error->message;
  EXPECT_TRUE(failed.logs.empty());
  EXPECT_EQ(failed.set_back, std::vector<LogKey>{key_});
  const Synced later = store_->sync();
  EXPECT_FALSE(later.error);
  EXPECT_TRUE(later.set_back.empty()) << "once";
  const LogState state = store_->state(key_).value();
  EXPECT_FALSE(state.durable || state.complete);
  EXPECT_EQ(state.end, 3u);
  EXPECT_EQ(state.synced, 3u);
  EXPECT_EQ(std::filesystem::file_size(file(".log")), 3u);
  EXPECT_EQ(whole(), "abc");

  const auto beyond = store_->append(key_, 6, "ghi", {});
  ASSERT_FALSE(beyond.has_value()) << "the sender begins again from LogHave";
  EXPECT_EQ(beyond.error().code, ErrorCode::Conflict);
  append(3, "def");
  ASSERT_TRUE(store_->finish(key_, 6).has_value());
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_TRUE(store_->state(key_)->durable);
  reopen();
  EXPECT_TRUE(store_->state(key_)->durable);
  EXPECT_EQ(whole(), "abcdef");
}

TEST_F(DurableTest, a_log_that_cannot_be_set_back_yet_takes_nothing) {
  FailingDisk disk;
  calls_ = disk.calls();
  reopen();
  append(0, "abc");
  disk.left = 2;  // the sync, and the sync of the shorter file
  const Synced failed = store_->sync();
  EXPECT_TRUE(failed.error.has_value());
  EXPECT_TRUE(failed.set_back.empty());
  const auto refused = store_->append(key_, 3, "def", {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Io) << "to be tried again";
  const Synced later = store_->sync();
  EXPECT_FALSE(later.error);
  EXPECT_EQ(later.set_back, std::vector<LogKey>{key_});
  EXPECT_EQ(store_->state(key_)->end, 0u);
  append(0, "abc");
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(store_->state(key_)->synced, 3u);
}

// The same for the index. Regression: an end mark that never reached the disk counted as written.
TEST_F(DurableTest, an_index_whose_sync_failed_is_written_anew) {
  FailingDisk disk;
  disk.only = ".index";
  calls_ = disk.calls();
  reopen();
  append(0, "abc");
  disk.left = 1;
  auto gapped = store_->append(key_, 5, "xyz", Gap{3, 5, "hard cap", {}});
  ASSERT_FALSE(gapped.has_value());
  EXPECT_EQ(gapped.error().code, ErrorCode::Io);
  EXPECT_EQ(disk.asked, 1);
  append(5, "xyz", Gap{3, 5, "hard cap", {}});
  EXPECT_EQ(disk.asked, 2) << "no byte stands behind a gap that is not synced";

  ASSERT_TRUE(store_->finish(key_, 8).has_value());
  struct stat old{}, now{};
  ASSERT_EQ(::stat(file(".index").c_str(), &old), 0);
  // so that its inode is not used again
  const io::UniqueFd kept(::open(file(".index").c_str(), O_RDONLY | O_CLOEXEC));
  disk.left = 1;
  EXPECT_TRUE(store_->sync().error.has_value());
  EXPECT_FALSE(store_->state(key_)->durable);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_TRUE(store_->state(key_)->durable);
  ASSERT_EQ(::stat(file(".index").c_str(), &now), 0);
  EXPECT_NE(old.st_ino, now.st_ino);
  reopen();
  EXPECT_TRUE(store_->state(key_)->durable);
  EXPECT_EQ(whole(), "abc<3-5 hard cap>xyz");
}

// A power cut removed the directory's name, and everything that was synced below it.
TEST_F(DurableTest, the_names_of_the_store_are_synced_when_it_opens) {
  FailingDisk disk;
  calls_ = disk.calls();
  reopen();
  EXPECT_TRUE(disk.folders.contains(dir_.path().string()));
  EXPECT_TRUE(disk.folders.contains(dir_.path().parent_path().string()));
}

}  // namespace
}  // namespace muster::logs
