// Logs leave the journal its share of the disk. Regression: ranks that wrote 15 MB/s filled the
// controller's disk of 400 MB. The quota (20 GB) was never compared with the disk's size, and logs
// used what the journal's ballast freed within a second. The controller died, and no start had the
// room that evicting logs would have made.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/io/room.h"
#include "common/io/unique_fd.h"
#include "tests/support/small_disk.h"
#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kShare = 16 * kMiB;

class FullDiskTest : public LogStoreTest {
 protected:
  // A disk of 64 MiB, of which 16 are the journal's. The quota is no limit here.
  void on_disk_of(const std::string& options) {
    store_.reset();
    disk_ = std::make_unique<test::SmallDisk>(root(), options);
    if (!disk_->problem().empty()) GTEST_SKIP() << disk_->problem();
    reopen(kQuota, kShare);
  }
  void TearDown() override {
    store_.reset();
    disk_.reset();
  }
  static LogKey rank_of(const std::string& job) { return {JobId(job), AttemptNo(1), RankNo(0)}; }
  Result<LogState> add(const std::string& job, std::uint64_t bytes) {
    const LogKey key = rank_of(job);
    return store_->append(key, store_->state(key)->end, std::string(bytes, job.front()), {});
  }
  void fill(const std::string& job, std::uint64_t mib) {
    for (std::uint64_t i = 0; i < mib; ++i) {
      const auto added = add(job, kMiB);
      ASSERT_TRUE(added) << added.error().message;
    }
  }
  [[nodiscard]] std::uint64_t free_bytes() const { return io::room_at(root())->bytes; }
  [[nodiscard]] std::uint64_t stored(const std::string& job) const {
    struct stat now{};
    const auto path = root() / job / "1" / "rank-0.log";
    return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
  }
  // Another program's file takes all but `leave` bytes.
  void stranger_leaves(std::uint64_t leave) {
    std::ofstream(root() / ".stranger", std::ios::app).close();
    const std::uint64_t free = free_bytes(), has = std::filesystem::file_size(root() / ".stranger");
    if (free <= leave) return;
    const io::UniqueFd fd(::open((root() / ".stranger").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(
        ::posix_fallocate(fd.get(), static_cast<off_t>(has), static_cast<off_t>(free - leave)), 0);
  }

  static constexpr std::uint64_t kQuota = 64 * kMiB;
  std::unique_ptr<test::SmallDisk> disk_;
};

TEST_F(FullDiskTest, logs_leave_the_journal_its_share) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  for (int i = 0; i < 200; ++i) {
    const auto added = add("runs", kMiB);
    ASSERT_TRUE(added) << i << ": " << added.error().message;
    ASSERT_GE(free_bytes(), kShare - kMiB) << i;
  }
  const auto read = store_->read(rank_of("runs"), 199 * kMiB, 10);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->data, "rrrrrrrrrr") << "the newest are there";
  EXPECT_TRUE(store_->read(rank_of("runs"), 0, 1)->gap_before) << "the oldest went";
}

// Logs may not use what the ballast frees when it is spent: existing logs keep their space, and get
// no more.
TEST_F(FullDiskTest, what_a_stranger_takes_is_not_taken_from_running_jobs_logs_all_at_once) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  fill("runs", 24);
  for (int i = 0; i < 4; ++i) {
    ASSERT_NO_FATAL_FAILURE(stranger_leaves(4 * kMiB));
    const auto added = add("runs", kMiB);
    ASSERT_TRUE(added) << added.error().message;
    ASSERT_GE(free_bytes(), 4 * kMiB) << "what comes takes no more than what goes";
  }
  EXPECT_GT(stored("runs"), 8 * kMiB);
}

TEST_F(FullDiskTest, what_logs_cannot_give_is_not_taken_in) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(stranger_leaves(kShare));
  const auto refused = add("runs", kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(refused.error().message,
              HasSubstr("less than 16 MiB of its disk are free, which are kept for the journal, "
                        "and older logs can give no more"));
  EXPECT_EQ(free_bytes(), kShare);
  std::filesystem::remove(root() / ".stranger");
  EXPECT_TRUE(add("runs", kMiB));
}

TEST_F(FullDiskTest, finished_jobs_logs_go_for_whoever_needs_the_room) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  fill("first", 12);
  fill("runs", 12);
  fill("second", 12);
  store_->mark_finished(JobId("first"));
  store_->mark_finished(JobId("second"));
  ASSERT_NO_FATAL_FAILURE(stranger_leaves(8 * kMiB));
  store_->make_room();
  EXPECT_EQ(stored("first"), 0U) << "the one that ended first";
  EXPECT_GE(stored("second"), 12 * kMiB);
  EXPECT_GE(free_bytes(), kShare);
}

// Regression: only the journal recorded which jobs had ended, and it could not be read without free
// space.
TEST_F(FullDiskTest, a_start_knows_finished_jobs_without_the_journal) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  fill("done", 16);
  fill("runs", 16);
  store_->mark_finished(JobId("done"));
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(stranger_leaves(0));
  reopen(kQuota, kShare);
  EXPECT_EQ(stored("done"), 0U);
  EXPECT_GE(stored("runs"), 16 * kMiB);
  EXPECT_GE(free_bytes(), kShare - kMiB);
}

TEST_F(FullDiskTest, a_start_that_no_finished_job_can_help_takes_of_the_others_what_it_needs) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  fill("runs", 40);
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(stranger_leaves(0));
  reopen(kQuota, kShare);
  EXPECT_GE(free_bytes(), kShare - kMiB);
  EXPECT_GE(stored("runs"), 20 * kMiB);
}

TEST_F(FullDiskTest, a_disk_without_inodes_takes_no_new_logs) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m,nr_inodes=160"));
  if (IsSkipped()) return;
  fill("runs", 1);
  for (int i = 0; i < 40; ++i) std::ofstream(root() / (".stranger-" + std::to_string(i))) << "x";
  const auto refused = add("new", 10);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("inodes left (df -i), which are kept for the journal"));
  EXPECT_TRUE(add("runs", 10)) << "it has its own";
}

// Regression: the eleventh job of 48 ranks was refused because no inodes were left, and so was each
// later job for a week: evicted logs left their files.
TEST_F(FullDiskTest, finished_jobs_give_their_inodes) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m,nr_inodes=1000"));
  if (IsSkipped()) return;
  const auto inodes = [&] { return io::room_at(root())->inodes; };
  int jobs = 0;
  for (; inodes() > 400; ++jobs) {
    const JobId job("job-" + std::to_string(jobs));
    for (std::uint32_t rank = 0; rank < 16; ++rank)
      ASSERT_TRUE(store_->append({job, AttemptNo(1), RankNo(rank)}, 0, "hello\n", {}));
    store_->mark_finished(job);
  }
  ASSERT_TRUE(add("runs", 10));
  store_->make_room();
  EXPECT_GE(inodes(), 512U);
  EXPECT_FALSE(std::filesystem::exists(root() / "job-0")) << "the oldest";
  EXPECT_TRUE(std::filesystem::exists(root() / ("job-" + std::to_string(jobs - 1))))
      << "no more than is wanted";
  EXPECT_TRUE(std::filesystem::exists(root() / "runs"));
}

// Regression: with 128 to 320 MiB free, jobs were accepted, but not their output: "no log lines".
TEST_F(FullDiskTest, what_comes_is_taken_down_to_the_least_room) {
  ASSERT_NO_FATAL_FAILURE(on_disk_of("size=64m"));
  if (IsSkipped()) return;
  store_ = std::move(*LogStore::open(root(), kQuota, {}, {.wanted = kShare, .least = kShare / 2}));
  stranger_leaves(kShare - 2 * kMiB);
  EXPECT_TRUE(add("runs", 10));
  stranger_leaves(kShare / 2 - kMiB);
  EXPECT_FALSE(add("runs", 10));
}

TEST_F(FullDiskTest, marks_outlive_the_store_in_their_order) {
  for (const char* job : {"a", "b", "c"}) ASSERT_TRUE(add(job, kMiB));
  const WallTime written = store_->written_at(JobId("b"));
  store_->mark_finished(JobId("b"));
  store_->mark_finished(JobId("a"));
  store_->mark_finished(JobId("c"));
  store_->unmark_finished(JobId("c"));
  EXPECT_EQ(store_->written_at(JobId("b")), written) << "a mark is no log";
  EXPECT_EQ(store_->jobs().size(), 3U);
  reopen(3 * kMiB);
  ASSERT_TRUE(add("new", 10));  // over the quota
  EXPECT_EQ(stored("b"), 0U);
  EXPECT_GE(stored("a"), kMiB);
  ASSERT_TRUE(add("new", kMiB));
  EXPECT_EQ(stored("a"), 0U);
  EXPECT_GE(stored("c"), kMiB) << "it runs after all";
}

// Regression: a log that arrived after its job's end made a directory without a mark.
TEST_F(FullDiskTest, a_late_log_is_marked_as_well) {
  store_->mark_finished(JobId("late"));
  ASSERT_TRUE(add("late", kMiB));
  reopen(kMiB);
  ASSERT_TRUE(add("runs", kMiB));
  EXPECT_EQ(stored("late"), 0U);
  EXPECT_GE(stored("runs"), kMiB);
}

}  // namespace
}  // namespace muster::logs
