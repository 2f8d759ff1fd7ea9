#include "controller/logs/log_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/unit/agent_watch/temp_dir.h"

namespace muster::logs {
namespace {

class LogStoreTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen(std::uint64_t quota = 1ull << 30) {
    store_.reset();
    auto store = LogStore::open(root(), quota);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
  }
  [[nodiscard]] std::filesystem::path root() const { return dir_.path() / "logs"; }
  [[nodiscard]] std::filesystem::path file(const std::string& extension) const { return root() / "job" / "1" / ("rank-0" + extension); }
  LogState append(std::uint64_t offset, std::string_view data, std::optional<Gap> gap = {}) {
    auto state = store_->append(key_, offset, data, gap);
    EXPECT_TRUE(state.has_value()) << state.error().message;
    return state.value_or(LogState{});
  }
  // All of it, gaps as "<from-to reason>".
  std::string whole(std::size_t most = 1000) {
    std::string text;
    for (std::uint64_t at = 0;;) {
      auto chunk = store_->read(key_, at, most);
      EXPECT_TRUE(chunk.has_value()) << chunk.error().message;
      if (!chunk || (chunk->data.empty() && !chunk->gap_before)) return text;
      if (chunk->gap_before)
        text += "<" + std::to_string(chunk->gap_before->from) + "-" + std::to_string(chunk->gap_before->to) + " " + chunk->gap_before->reason + ">";
      text += chunk->data;
      at = chunk->offset + chunk->data.size();
    }
  }
  test::TempDir dir_;
  const LogKey key_{JobId("job"), AttemptNo(1), RankNo(0)};
  std::unique_ptr<LogStore> store_;
};

TEST_F(LogStoreTest, a_log_nobody_has_sent_anything_of_is_empty) {
  EXPECT_EQ(store_->state(key_).value().end, 0u);
  EXPECT_EQ(whole(), "");
  EXPECT_EQ(store_->tail(key_, 5).value(), 0u);
  EXPECT_TRUE(store_->list(key_.job).empty());
}

TEST_F(LogStoreTest, what_is_there_already_is_ignored_and_a_hole_refused) {
  EXPECT_EQ(append(0, "hello ").end, 6u);
  EXPECT_EQ(append(0, "hello ").end, 6u);
  EXPECT_EQ(append(3, "lo world").end, 11u);
  const auto hole = store_->append(key_, 20, "x", {});
  ASSERT_FALSE(hole.has_value());
  EXPECT_EQ(hole.error().code, ErrorCode::Conflict);
  EXPECT_EQ(whole(3), "hello world");
}

TEST_F(LogStoreTest, gaps_are_kept_and_never_crossed) {
  append(0, "one\n");
  EXPECT_EQ(append(10, "two\n", Gap{4, 10, "hard cap", {}}).end, 14u);
  EXPECT_EQ(append(10, "two\n", Gap{4, 10, "hard cap", {}}).end, 14u);
  append(14, "three\n", Gap{14, 14, "truncated", {}});
  append(14, "three\n", Gap{14, 14, "truncated", {}});
  const std::string expected = "one\n<4-10 hard cap>two\n<14-14 truncated>three\n";
  EXPECT_EQ(whole(), expected);
  reopen();
  EXPECT_EQ(whole(2), expected);
  EXPECT_EQ(store_->state(key_).value().end, 20u);
  const auto inside = store_->read(key_, 6, 100);
  EXPECT_EQ(inside->offset, 10u);
  EXPECT_EQ(inside->data, "two\n");
  append(20, "four\n");
  EXPECT_EQ(whole(), expected + "four\n");
}

TEST_F(LogStoreTest, a_gap_of_unknown_length_is_told_with_what_follows) {
  append(0, "a");
  append(1, "", Gap{1, 1, "truncated", {}});
  EXPECT_EQ(whole(), "a") << "a follower must not turn in a circle";
  append(1, "b", Gap{1, 1, "truncated", {}});
  EXPECT_EQ(whole(), "a<1-1 truncated>b") << "told twice, kept once";
}

TEST_F(LogStoreTest, the_end_is_final) {
  append(0, "abc");
  EXPECT_FALSE(store_->finish(key_, 5).has_value());
  EXPECT_TRUE(store_->finish(key_, 3).value().complete);
  EXPECT_EQ(append(3, "more").end, 3u);
  reopen();
  EXPECT_TRUE(store_->state(key_).value().complete);
  const LogKey none{JobId("job"), AttemptNo(1), RankNo(7)};
  EXPECT_TRUE(store_->finish(none, 0).value().complete);
  EXPECT_EQ(store_->list(key_.job), (std::vector<LogKey>{key_, none}));
}

TEST_F(LogStoreTest, tail_counts_whole_lines_over_gaps) {
  append(0, "1\n2\n3\n");
  append(100, "4\n5\n6", Gap{6, 100, "hard cap", {}});
  EXPECT_EQ(store_->tail(key_, 1).value(), 104u);
  EXPECT_EQ(store_->tail(key_, 3).value(), 100u);
  EXPECT_EQ(store_->tail(key_, 4).value(), 4u);
  EXPECT_EQ(store_->tail(key_, 100).value(), 0u);
}

TEST_F(LogStoreTest, followers_are_told_and_may_read) {
  std::string seen;
  store_->on_change([&](const LogKey& key) { seen += store_->read(key, seen.size(), 100)->data; });
  append(0, "a\n");
  append(2, "b\n");
  EXPECT_EQ(seen, "a\nb\n");
}

// A controller killed at any byte of any file: it opens to a state that it had, and what the agent then sends again makes it whole.
TEST_F(LogStoreTest, killed_at_any_byte_of_the_index) {
  append(0, "one\n");
  append(10, "two\n", Gap{4, 10, "hard cap", {}});
  append(14, "three\n", Gap{14, 14, "truncated", {}});
  ASSERT_TRUE(store_->finish(key_, 20).has_value());
  store_.reset();
  std::string index;
  {
    std::ifstream in(file(".index"), std::ios::binary);
    index.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::string log;
  {
    std::ifstream in(file(".log"), std::ios::binary);
    log.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_EQ(log, "one\ntwo\nthree\n");
  // An index record is written before the bytes that need it: at each cut of the index the log reaches at most to the next record's place.
  for (std::size_t cut = 0; cut <= index.size(); ++cut) {
    std::ofstream(file(".index"), std::ios::binary | std::ios::trunc) << index.substr(0, cut);
    {
      const std::size_t bytes = cut % 3 * 2;
      std::ofstream(file(".log"), std::ios::binary | std::ios::trunc) << log.substr(0, bytes);
      reopen();
      const LogState state = store_->state(key_).value();
      EXPECT_FALSE(state.complete) << "an end that the bytes do not reach";
      // The agent goes on from there.
      const std::string truth = "one\n......two\nthree\n";
      if (state.end < 4) append(state.end, truth.substr(state.end, 4 - state.end));
      if (state.end <= 4) append(10, "two\n", Gap{4, 10, "hard cap", {}});
      append(10, "two\n");
      append(14, "three\n", Gap{14, 14, "truncated", {}});
      ASSERT_EQ(whole(), "one\n<4-10 hard cap>two\n<14-14 truncated>three\n") << "cut " << cut << " bytes " << bytes;
      store_.reset();
      std::ofstream(file(".index"), std::ios::binary | std::ios::trunc) << index.substr(0, cut);
    }
  }
}

TEST_F(LogStoreTest, pieces_sent_again_and_kills_between_them) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ASSERT_TRUE(store_->remove(key_.job).has_value());
    std::string truth;
    while (truth.size() < 3000) truth += "line " + std::to_string(truth.size()) + "\n";
    while (store_->state(key_).value().end < truth.size()) {
      const std::uint64_t end = store_->state(key_).value().end;
      const std::uint64_t from = end - std::min<std::uint64_t>(end, random() % 200);
      append(from, std::string_view(truth).substr(from, random() % 300));
      if (random() % 4 == 0) {
        store_.reset();
        // The last write of the dead process reached the file in part.
        if (random() % 2 == 0 && std::filesystem::exists(file(".log"))) {
          const std::uint64_t size = std::filesystem::file_size(file(".log"));
          std::filesystem::resize_file(file(".log"), size - std::min<std::uint64_t>(size, random() % 50));
        }
        reopen();
      }
    }
    ASSERT_EQ(whole(), truth);
  }
}

TEST_F(LogStoreTest, the_quota_takes_finished_jobs_first_the_oldest_before_the_others) {
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
  EXPECT_TRUE(store_->state({JobId("a"), AttemptNo(1), RankNo(0)})->complete) << "it must not be asked for again";
  EXPECT_EQ(store_->read({JobId("b"), AttemptNo(1), RankNo(0)}, 0, 100)->data.size(), 100u);
}

TEST_F(LogStoreTest, then_the_oldest_bytes_of_the_largest_log_go) {
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

TEST_F(LogStoreTest, synced_is_told_after_a_sync) {
  EXPECT_EQ(append(0, "abc").synced, 0u);
  EXPECT_EQ(store_->sync().value(), std::vector<LogKey>{key_});
  EXPECT_EQ(store_->state(key_)->synced, 3u);
  EXPECT_EQ(append(3, "def").synced, 3u);
  EXPECT_TRUE(store_->sync().has_value());
  EXPECT_TRUE(store_->sync()->empty());
  reopen();
  EXPECT_EQ(store_->state(key_)->synced, 0u);
  EXPECT_EQ(store_->sync().value(), std::vector<LogKey>{key_}) << "opened again, nobody knows";
}

TEST_F(LogStoreTest, the_series_keeps_each_attempts_new_steps) {
  const auto point = [](std::uint32_t attempt, std::int64_t step, double loss) { return SeriesPoint{{}, AttemptNo(attempt), step, loss, true}; };
  ASSERT_TRUE(store_->add_points(key_.job, {point(1, 1, 3), point(1, 2, 2)}).has_value());
  ASSERT_TRUE(store_->add_points(key_.job, {point(1, 2, 9), point(1, 3, 1)}).has_value());
  reopen();
  ASSERT_TRUE(store_->add_points(key_.job, {point(1, 3, 9), point(2, 2, 2)}).has_value());
  std::vector<std::pair<std::int64_t, double>> seen;
  const auto points = store_->series(key_.job);
  ASSERT_TRUE(points.has_value());
  for (const SeriesPoint& one : *points) seen.emplace_back(one.step, one.loss);
  EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, double>>{{1, 3}, {2, 2}, {3, 1}, {2, 2}}));
  EXPECT_TRUE(store_->series(JobId("other"))->empty());
}

TEST_F(LogStoreTest, a_damaged_series_keeps_its_sound_part_and_goes_on) {
  ASSERT_TRUE(store_->add_points(key_.job, {SeriesPoint{{}, AttemptNo(1), 1, 1, true}}).has_value());
  store_.reset();
  std::ofstream(root() / "job" / "series", std::ios::binary | std::ios::app) << std::string(40, '\0');
  reopen();
  ASSERT_TRUE(store_->add_points(key_.job, {SeriesPoint{{}, AttemptNo(1), 2, 1, true}}).has_value());
  EXPECT_EQ(store_->series(key_.job)->size(), 2u);
}

TEST_F(LogStoreTest, a_file_that_cannot_be_written_is_an_error_not_a_loss) {
  append(0, "abc");
  store_.reset();
  std::filesystem::rename(file(".log"), dir_.path() / "aside");
  std::filesystem::create_directory(file(".log"));
  reopen();
  EXPECT_FALSE(store_->append(key_, 0, "abc", {}).has_value());
  std::filesystem::remove(file(".log"));
  std::filesystem::rename(dir_.path() / "aside", file(".log"));
  reopen();
  EXPECT_EQ(append(3, "def").end, 6u);
  EXPECT_EQ(whole(), "abcdef");
}

}  // namespace
}  // namespace muster::logs
