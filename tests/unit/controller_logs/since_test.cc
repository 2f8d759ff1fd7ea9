// --since: where the bytes begin that arrived at a given time or later, by the sparse time index.
#include <gtest/gtest.h>

#include <fstream>

#include "controller/logs/rank_log.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::logs {
namespace {

class SinceTest : public testing::Test {
 protected:
  SinceTest() { reopen(); }
  void reopen() {
    log_.reset();
    auto log = RankLog::open(path(".log"), path(".index"));
    EXPECT_TRUE(log.has_value());
    log_.emplace(std::move(*log));
  }
  [[nodiscard]] std::filesystem::path path(const std::string& extension) const {
    return dir_.path() / ("rank-0" + extension);
  }
  // Times are counted in steps of the index.
  static WallTime at(double steps) {
    return WallTime(
        std::chrono::hours(400'000) +
        std::chrono::duration_cast<Duration>(steps * std::chrono::duration<double>(kTimeStep)));
  }
  void append(std::string_view data, double steps) {
    const std::uint64_t end = log_->state().end;
    EXPECT_EQ(log_->append(end, data, {}, at(steps)).value_or(0), data.size());
  }
  std::uint64_t since(double steps) {
    const auto from = LogIndex::since(path(".index"), at(steps), log_->state().end);
    EXPECT_TRUE(from.has_value());
    return log_->line_begin(from.value_or(0)).value_or(UINT64_MAX);
  }
  std::string text_since(double steps) { return log_->read(since(steps), 1000)->data; }

  test::TempDir dir_;
  std::optional<RankLog> log_;
};

TEST_F(SinceTest, NothingIsLostAndAtMostAStepComesAlong) {
  append("one\n", 0);
  append("two\n", 0.5);  // within the first point's step
  append("three\n", 10);
  append("four\n", 20);
  EXPECT_EQ(text_since(-100), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(text_since(0.5), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(text_since(1), "three\nfour\n");
  EXPECT_EQ(text_since(10), "three\nfour\n");
  EXPECT_EQ(text_since(11), "four\n");
  EXPECT_EQ(text_since(20.9), "four\n");
  EXPECT_EQ(text_since(21), "");
  reopen();
  EXPECT_EQ(text_since(11), "four\n") << "the index is read from the disk";
}

TEST_F(SinceTest, BeginsWithAWholeLine) {
  append("one\nhalf of ", 0);
  append("a line\nlast\n", 10);
  EXPECT_EQ(text_since(10), "half of a line\nlast\n");
  EXPECT_EQ(log_->line_begin(0).value(), 0u);
  EXPECT_EQ(log_->line_begin(4).value(), 4u) << "it begins there";
}

TEST_F(SinceTest, ALineLongerThanAnyIsNotSoughtForEver) {
  append(std::string(100'000, 'x'), 0);
  append("y", 10);
  EXPECT_EQ(since(10), 100'000u);
}

TEST_F(SinceTest, ScansBackOnlyToAGap) {
  append("one\nhalf", 0);
  ASSERT_TRUE(log_->append(100, "tail\n", Gap{8, 100, "hard cap", at(9)}, at(10)).has_value());
  EXPECT_EQ(since(10), 100u);
  append("more\n", 20);
  EXPECT_EQ(since(20), 105u);
}

// The clock was set back by an hour: everything is shown that arrived at the time or later by
// either setting of the clock.
TEST_F(SinceTest, AClockThatWasSetBackHidesNothing) {
  append("one\n", 0);
  append("two\n", 3600);
  append("three\n", 10);
  append("four\n", 20);
  EXPECT_EQ(text_since(3600), "two\nthree\nfour\n");
  EXPECT_EQ(text_since(15), "two\nthree\nfour\n");
  EXPECT_EQ(text_since(4000), "");
}

TEST_F(SinceTest, WithoutAnIndexAllIsShown) {
  append("one\n", 0);
  append("two\n", 10);
  log_.reset();
  std::filesystem::remove(path(".index"));
  reopen();
  EXPECT_EQ(text_since(5), "one\ntwo\n");
  append("three\n", 20);
  EXPECT_EQ(text_since(10), "one\ntwo\nthree\n") << "when the first two came is not known";
  EXPECT_EQ(text_since(21), "");
}

TEST_F(SinceTest, OfAnEmptyLogNothing) { EXPECT_EQ(since(0), 0u); }

// A power cut removed the end of the log but not of the index: the bytes that are sent again arrive
// later than the points record.
TEST_F(SinceTest, BytesSentAgainAfterAPowerCutAreNotHidden) {
  append("one\n", 0);
  append("two\n", 10);
  append("three\n", 20);
  log_.reset();
  std::filesystem::resize_file(path(".log"), 4);
  reopen();
  append("two\n", 30);
  append("three\n", 30.5);
  EXPECT_EQ(text_since(15), "two\nthree\n");
  EXPECT_EQ(text_since(30), "two\nthree\n");
}

// An end mark beyond the bytes causes a rewrite of the index; the times of the remaining bytes
// stay.
TEST_F(SinceTest, AnIndexThatIsWrittenAnewKeepsItsTimes) {
  append("one\n", 0);
  append("two\n", 10);
  append("three\n", 20);
  ASSERT_TRUE(log_->finish(14).has_value());
  ASSERT_TRUE(log_->synced(14).value_or(false)) << "the mark is written behind synced bytes";
  log_.reset();
  std::filesystem::resize_file(path(".log"), 8);
  reopen();
  EXPECT_FALSE(log_->state().complete);
  EXPECT_EQ(text_since(5), "two\n");
}

}  // namespace
}  // namespace muster::logs
