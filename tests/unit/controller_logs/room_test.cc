// What the store frees: bytes by its quota, memory and descriptors of what has ended, and
// everything of a forgotten job.
#include <sys/stat.h>

#include <algorithm>

#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

class RoomTest : public LogStoreTest {
 protected:
  LogKey key(const std::string& job, std::uint32_t attempt = 1, std::uint32_t rank = 0) {
    return {JobId(job), AttemptNo(attempt), RankNo(rank)};
  }
  void fill(const LogKey& log, std::size_t bytes) {
    const std::uint64_t end = store_->state(log)->end;
    ASSERT_TRUE(store_->append(log, end, std::string(bytes, 'x'), {}).has_value());
  }
  void end(const LogKey& log) {
    ASSERT_TRUE(store_->finish(log, store_->state(log)->end).has_value());
  }
  [[nodiscard]] std::uint64_t on_disk(const LogKey& log) const {
    struct stat now{};
    const auto path = root() / log.job.str() / std::to_string(log.attempt.value) /
                      ("rank-" + std::to_string(log.rank.value) + ".log");
    return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
  }
};

TEST_F(RoomTest, the_quota_takes_finished_jobs_first_the_oldest_before_the_others) {
  reopen(3 << 20);
  const auto fill = [&](const std::string& job, std::size_t bytes) {
    const LogKey key{JobId(job), AttemptNo(1), RankNo(0)};
    ASSERT_TRUE(store_->append(key, 0, std::string(bytes, 'x'), {}).has_value());
  };
  fill("a", 1 << 20);
  fill("b", 1 << 20);
  ASSERT_TRUE(store_->finish({JobId("a"), AttemptNo(1), RankNo(0)}, 1 << 20).has_value());
  store_->mark_finished(JobId("a"));
  store_->mark_finished(JobId("b"));
  fill("c", 3 << 19);
  const auto of_a = store_->read({JobId("a"), AttemptNo(1), RankNo(0)}, 0, 100);
  ASSERT_TRUE(of_a.has_value());
  EXPECT_EQ(of_a->data, "");
  ASSERT_TRUE(of_a->gap_before.has_value());
  EXPECT_EQ(of_a->offset, 1u << 20);
  EXPECT_EQ(synced().size(), 3u);
  EXPECT_TRUE(store_->state({JobId("a"), AttemptNo(1), RankNo(0)})->durable)
      << "it must not be asked for again";
  EXPECT_EQ(store_->read({JobId("b"), AttemptNo(1), RankNo(0)}, 0, 100)->data.size(), 100u);
}

TEST_F(RoomTest, then_the_oldest_bytes_of_the_largest_log_go) {
  reopen(1 << 20);
  const LogKey small{JobId("job"), AttemptNo(1), RankNo(1)};
  ASSERT_TRUE(store_->append(small, 0, std::string(100 << 10, 's'), {}).has_value());
  std::string truth;
  for (int part = 0; part < 32; ++part) {
    const std::string piece(64 << 10, static_cast<char>('a' + part % 26));
    append(truth.size(), piece);
    truth += piece;
  }
  struct stat now{};
  ASSERT_EQ(::stat(file(".log").c_str(), &now), 0);
  EXPECT_LE(static_cast<std::uint64_t>(now.st_blocks) * 512, 1u << 20) << "really freed";
  const auto first = store_->read(key_, 0, 1 << 20);
  ASSERT_TRUE(first->gap_before.has_value());
  EXPECT_EQ(first->data, truth.substr(first->offset, first->data.size()));
  EXPECT_EQ(store_->read(small, 0, 1)->data, "s");
  reopen(1 << 20);
  EXPECT_EQ(store_->read(key_, 0, 1 << 20)->offset, first->offset);
  EXPECT_EQ(store_->state(key_)->end, truth.size());
}

// Regression: a job continued for attempt after attempt. Ended attempts were no longer in memory,
// so the quota did not see them, and evicted bytes of the running one.
TEST_F(RoomTest, an_earlier_attempts_complete_log_is_the_largest_like_any_other) {
  reopen(2 << 20);
  fill(key("job", 1), 3 << 19);
  end(key("job", 1));
  ASSERT_EQ(synced().size(), 1u);
  fill(key("job", 2), 1 << 20);
  EXPECT_LT(on_disk(key("job", 1)), 3u << 19);
  EXPECT_EQ(store_->read(key("job", 2), 0, 1)->data, "x") << "the smaller one";
}

// Logs may arrive after their job's end. Regression: if the job had already been evicted, these
// were never evicted.
TEST_F(RoomTest, what_comes_late_of_an_evicted_job_goes_before_a_running_jobs) {
  reopen(2 << 20);
  fill(key("done"), 1 << 20);
  store_->mark_finished(JobId("done"));
  fill(key("runs"), 3 << 19);
  EXPECT_EQ(on_disk(key("done")), 0u);
  fill(key("done"), 1 << 18);
  fill(key("runs"), 3 << 17);
  EXPECT_EQ(on_disk(key("done")), 0u);
  EXPECT_EQ(store_->read(key("runs"), 0, 1)->data, "x");
}

// Regression: one descriptor leaked with each job: the last samples arrive a heartbeat after the
// end, and opened the series again for ever.
TEST_F(RoomTest, the_series_of_a_finished_job_is_not_kept_open) {
  const auto point = [](std::int64_t step) { return SeriesPoint{{}, AttemptNo(1), step, 1, true}; };
  ASSERT_TRUE(store_->add_points(key_.job, {point(1)}).has_value());
  EXPECT_EQ(open_below(root()).size(), 1u);
  store_->mark_finished(key_.job);
  EXPECT_EQ(open_below(root()), std::vector<std::string>{});
  ASSERT_TRUE(store_->add_points(key_.job, {point(1), point(2)}).has_value());
  EXPECT_EQ(open_below(root()), std::vector<std::string>{});
  EXPECT_EQ(store_->series(key_.job)->size(), 2u);
}

// Regression: each log that was ever written stayed in memory, and up to 256 of them kept their
// descriptors, for the controller's whole incarnation.
TEST_F(RoomTest, durable_logs_hold_no_descriptors) {
  for (std::uint32_t rank = 0; rank < 40; ++rank) fill(key("job", 1, rank), 10);
  EXPECT_EQ(open_below(root()).size(), 80u);
  for (std::uint32_t rank = 0; rank < 40; ++rank) end(key("job", 1, rank));
  EXPECT_EQ(synced().size(), 40u);
  EXPECT_EQ(open_below(root()), std::vector<std::string>{});
  EXPECT_TRUE(store_->state(key("job", 1, 7))->durable);
  EXPECT_EQ(store_->read(key("job", 1, 7), 0, 100)->data, std::string(10, 'x'));
}

// The end of a dead node's logs will never arrive.
TEST_F(RoomTest, a_finished_jobs_incomplete_logs_hold_no_descriptors) {
  for (std::uint32_t rank = 0; rank < 40; ++rank) fill(key("job", 1, rank), 10);
  EXPECT_EQ(synced().size(), 40u);
  store_->mark_finished(key_.job);
  EXPECT_EQ(open_below(root()), std::vector<std::string>{});
  fill(key("job", 1, 7), 10);
  EXPECT_EQ(store_->state(key("job", 1, 7))->end, 20u) << "it came after all";
}

TEST_F(RoomTest, more_logs_than_descriptors_grow_side_by_side) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t rank = 0; rank < 300; ++rank) fill(key("job", 1, rank), 10);
  }
  EXPECT_LE(open_below(root()).size(), 512u);
  EXPECT_EQ(synced().size(), 300u);
  for (std::uint32_t rank = 0; rank < 300; ++rank)
    ASSERT_EQ(store_->state(key("job", 1, rank))->synced, 30u);
}

// Regression: nothing called remove(), so directories of logs stayed for ever, whatever the quota
// had evicted from them.
TEST_F(RoomTest, a_removed_job_leaves_nothing) {
  fill(key("old"), 100 << 10);
  fill(key("new"), 10);
  ASSERT_TRUE(
      store_->add_points(JobId("old"), {SeriesPoint{{}, AttemptNo(1), 1, 1, true}}).has_value());
  std::vector<JobId> jobs = store_->jobs();
  std::ranges::sort(jobs);
  EXPECT_EQ(jobs, (std::vector<JobId>{JobId("new"), JobId("old")}));
  EXPECT_GT(store_->written_at(JobId("old")), WallTime{});
  EXPECT_EQ(store_->written_at(JobId("none")), WallTime{});
  store_->mark_finished(JobId("old"));
  ASSERT_TRUE(store_->remove(JobId("old")).has_value());
  EXPECT_EQ(store_->jobs(), std::vector<JobId>{JobId("new")});
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(root())) ++left;
  EXPECT_EQ(left, 1u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key("new")})
      << "what was to be synced of it is no trouble";
  EXPECT_TRUE(store_->remove(JobId("old")).has_value()) << "once more, after a restart";
}

TEST_F(RoomTest, what_the_store_did_not_make_is_no_job) {
  fill(key("job"), 10);
  std::filesystem::create_directory(root() / "lost+found");
  std::filesystem::create_directories(root() / "backup" / "old");
  EXPECT_EQ(store_->jobs(), std::vector<JobId>{JobId("job")});
}

TEST_F(RoomTest, a_removal_that_was_cut_short_is_ended_at_the_next_start) {
  fill(key("job"), 10);
  store_.reset();
  std::filesystem::rename(root() / "job", root() / ".removed-job-1");
  reopen();
  EXPECT_TRUE(store_->jobs().empty());
  EXPECT_TRUE(std::filesystem::is_empty(root()));
}

}  // namespace
}  // namespace muster::logs
