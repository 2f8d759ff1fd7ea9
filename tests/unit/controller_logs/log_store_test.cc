#include "controller/logs/log_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

TEST_F(LogStoreTest, a_log_nobody_has_sent_anything_of_is_empty) {
  EXPECT_EQ(store_->state(key_).value().end, 0u);
  EXPECT_EQ(whole(), "");
  EXPECT_EQ(store_->tail(key_, 5).value(), 0u);
  EXPECT_TRUE(store_->list(key_.job).empty());
}

// Each node has a setup of its own. A process of that name on another node, or rank 0, is a
// different log.
TEST_F(LogStoreTest, node_logs_have_their_nodes_name) {
  const LogKey a{key_.job, key_.attempt, RankNo(0), "setup", NodeName("node.1")},
      b{key_.job, key_.attempt, RankNo(0), "setup", NodeName("node-2")};
  append(0, "rank\n");
  ASSERT_TRUE(store_->append(a, 0, "of a\n", {}));
  ASSERT_TRUE(store_->append(b, 0, "of b\n", {}));
  ASSERT_TRUE(store_->finish(b, 5));
  EXPECT_EQ(synced().size(), 3u);
  reopen();
  EXPECT_EQ(store_->read(a, 0, 100)->data, "of a\n");
  EXPECT_EQ(store_->read(b, 0, 100)->data, "of b\n");
  EXPECT_EQ(whole(), "rank\n");
  EXPECT_TRUE(store_->state(b)->durable);
  EXPECT_FALSE(store_->state(a)->durable);
  EXPECT_EQ(store_->list(key_.job), (std::vector{key_, b, a}));
  EXPECT_TRUE(std::filesystem::exists(root() / "job" / "1" / "setup@node.1.log"));
  ASSERT_TRUE(store_->remove(key_.job));
  EXPECT_TRUE(store_->list(key_.job).empty());
}

TEST_F(LogStoreTest, names_of_files_and_of_logs) {
  const JobId job("job");
  for (const LogKey& key : {LogKey{job, AttemptNo(3), RankNo(4294967295)},
                            LogKey{job, AttemptNo(3), RankNo(0), "A_9-z", NodeName("n.0_7-x")},
                            LogKey{job, AttemptNo(3), RankNo(0), "rank-1", NodeName("n")}}) {
    EXPECT_EQ(key_of_stem(job, AttemptNo(3), file_stem(key)), key) << file_stem(key);
  }
  for (const char* stem : {"", "rank-", "rank-x", "rank-4294967296", "series", "@", "setup",
                           "setup@", "@n1", "setup@.n1", "setup@a@b", "se/tup@n1", "setup@n/1"}) {
    EXPECT_FALSE(key_of_stem(job, AttemptNo(3), stem)) << stem;
  }
  for (const auto& [name, node] : {std::pair<std::string, std::string>("..", "n"),
                                   {"a/b", "n"},
                                   {"", "n"},
                                   {std::string(65, 'x'), "n"},
                                   {"setup", ""},
                                   {"setup", ".."},
                                   {"setup", "a/b"},
                                   {"setup", std::string(64, 'n')},
                                   {std::string("s\0", 2), "n"}}) {
    EXPECT_FALSE(is_auxiliary(name, node)) << name << " " << node;
  }
  EXPECT_TRUE(is_auxiliary(std::string(64, 'x'), std::string(63, 'n')));
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

TEST_F(LogStoreTest, a_gap_of_unknown_length_is_reported_with_what_follows) {
  append(0, "a");
  append(1, "", Gap{1, 1, "truncated", {}});
  EXPECT_EQ(whole(), "a") << "a follower must not loop";
  append(1, "b", Gap{1, 1, "truncated", {}});
  EXPECT_EQ(whole(), "a<1-1 truncated>b") << "told twice, kept once";
}

TEST_F(LogStoreTest, the_end_is_final) {
  append(0, "abc");
  EXPECT_FALSE(store_->finish(key_, 5).has_value());
  EXPECT_TRUE(store_->finish(key_, 3).value().complete);
  EXPECT_EQ(append(3, "more").end, 3u);
  EXPECT_EQ(synced(), std::vector<LogKey>{key_});
  EXPECT_EQ(append(3, "more").end, 3u);
  reopen();
  EXPECT_TRUE(store_->state(key_).value().complete);
  EXPECT_EQ(append(3, "more").end, 3u);
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

// Progress bars have no newline. Regression: a request for the last ten lines of such a log read
// all of it, backwards, while every rank's bytes waited.
TEST_F(LogStoreTest, tail_reads_no_further_back_than_64_kib_a_line) {
  append(0, "begin\n");
  store_.reset();
  constexpr std::uint64_t kSize = 1ull << 40;
  std::filesystem::resize_file(file(".log"), kSize);  // a hole: it would read as zeros for long
  reopen(UINT64_MAX);
  EXPECT_EQ(store_->tail(key_, 1).value(), kSize - (64 << 10));
  EXPECT_EQ(store_->tail(key_, 10).value(), kSize - (640 << 10));
}

TEST_F(LogStoreTest, followers_are_notified_and_may_read) {
  std::string seen;
  store_->on_change([&](const LogKey& key) { seen += store_->read(key, seen.size(), 100)->data; });
  append(0, "a\n");
  append(2, "b\n");
  EXPECT_EQ(seen, "a\nb\n");
}

// A controller is killed at any byte of any file: the store opens to a state that it had, and the
// bytes that the agent sends again complete it.
TEST_F(LogStoreTest, killed_at_any_byte_of_the_index) {
  append(0, "one\n");
  append(10, "two\n", Gap{4, 10, "hard cap", {}});
  append(14, "three\n", Gap{14, 14, "truncated", {}});
  ASSERT_TRUE(store_->finish(key_, 20).has_value());
  ASSERT_EQ(synced(), std::vector<LogKey>{key_});
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
  // An index record is written before the bytes that need it: at each cut of the index, the log
  // ends at most where the next record begins.
  for (std::size_t cut = 0; cut <= index.size(); ++cut) {
    std::ofstream(file(".index"), std::ios::binary | std::ios::trunc) << index.substr(0, cut);
    {
      const std::size_t bytes = cut % 3 * 2;
      std::ofstream(file(".log"), std::ios::binary | std::ios::trunc) << log.substr(0, bytes);
      reopen();
      const LogState state = store_->state(key_).value();
      EXPECT_FALSE(state.complete) << "an end that the bytes do not reach";
      // The agent continues from there.
      const std::string truth = "one\n......two\nthree\n";
      if (state.end < 4) append(state.end, truth.substr(state.end, 4 - state.end));
      if (state.end <= 4) append(10, "two\n", Gap{4, 10, "hard cap", {}});
      append(10, "two\n");
      append(14, "three\n", Gap{14, 14, "truncated", {}});
      ASSERT_EQ(whole(), "one\n<4-10 hard cap>two\n<14-14 truncated>three\n")
          << "cut " << cut << " bytes " << bytes;
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
          std::filesystem::resize_file(file(".log"),
                                       size - std::min<std::uint64_t>(size, random() % 50));
        }
        reopen();
      }
    }
    ASSERT_EQ(whole(), truth);
  }
}

TEST_F(LogStoreTest, the_series_keeps_each_attempts_new_steps) {
  const auto point = [](std::uint32_t attempt, std::int64_t step, double loss) {
    return SeriesPoint{{}, AttemptNo(attempt), step, loss, true};
  };
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
  ASSERT_TRUE(
      store_->add_points(key_.job, {SeriesPoint{{}, AttemptNo(1), 1, 1, true}}).has_value());
  store_.reset();
  std::ofstream(root() / "job" / "series", std::ios::binary | std::ios::app)
      << std::string(40, '\0');
  reopen();
  ASSERT_TRUE(
      store_->add_points(key_.job, {SeriesPoint{{}, AttemptNo(1), 2, 1, true}}).has_value());
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
