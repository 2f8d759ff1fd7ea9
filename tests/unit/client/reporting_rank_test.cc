#include "client/commands/follow/reporting_rank.h"

#include <gtest/gtest.h>

#include <optional>

namespace muster::client {
namespace {

v1::Progress reading(std::uint32_t attempt, std::uint32_t reporting_rank,
                     std::optional<std::int64_t> step = 1) {
  v1::Progress progress;
  progress.set_attempt(attempt);
  progress.set_reporting_rank(reporting_rank);
  if (step) progress.set_step(*step);
  return progress;
}

class ReportingRankTest : public testing::Test {
 protected:
  void line(std::uint32_t attempt, std::uint32_t rank, const std::string& text) {
    if (reporting_rank_.on_line(attempt, rank, text)) shown_ += text + " ";
  }
  void heard(const v1::Progress& progress) {
    for (const auto& one : reporting_rank_.on_progress(progress)) shown_ += one.text + " ";
  }
  ReportingRank reporting_rank_;
  std::string shown_;
};

TEST_F(ReportingRankTest, WithoutAReadingItIsRankZero) {
  line(1, 0, "a0");
  line(1, 1, "a1");
  line(1, 0, "b0");
  EXPECT_EQ(shown_, "a0 b0 ");
  EXPECT_EQ(reporting_rank_.not_shown(), 1u);
}

// Megatron prints its steps on the last rank. Regression: rank 0 counted as the reporting rank, so
// lines before the last rank's first step were lost.
TEST_F(ReportingRankTest, LinesFromBeforeItsFirstStepComeOutInOrder) {
  line(1, 7, "a7");
  line(1, 3, "a3");
  line(1, 0, "a0");
  line(1, 7, "b7");
  heard(reading(1, 7));
  line(1, 7, "c7");
  line(1, 0, "b0");
  EXPECT_EQ(shown_, "a0 a7 b7 c7 ");
  EXPECT_EQ(reporting_rank_.not_shown(), 2u);
}

TEST_F(ReportingRankTest, AReadingWithoutAStepNamesNobody) {
  line(1, 7, "a7");
  heard(reading(1, 0, std::nullopt));
  heard(reading(1, 7));
  EXPECT_EQ(shown_, "a7 ");
}

// Every rank prints steps, and the second node's reading arrived first.
TEST_F(ReportingRankTest, ALowerRankTakesOverWithAllItsLines) {
  line(1, 2, "a2");
  line(1, 4, "a4");
  heard(reading(1, 4));
  line(1, 2, "b2");
  line(1, 4, "b4");
  line(1, 5, "b5");
  heard(reading(1, 2));
  line(1, 2, "c2");
  line(1, 4, "c4");
  EXPECT_EQ(shown_, "a4 b4 a2 b2 c2 ");
  EXPECT_EQ(reporting_rank_.not_shown(), 2u);
}

// After a restart of the controller, the first heartbeat came from the node of rank 4.
TEST_F(ReportingRankTest, AHigherRankDoesNot) {
  heard(reading(1, 0));
  line(1, 4, "a4");
  heard(reading(1, 4));
  line(1, 4, "b4");
  line(1, 0, "a0");
  EXPECT_EQ(shown_, "a0 ");
}

TEST_F(ReportingRankTest, ANewAttemptHasItsOwn) {
  heard(reading(1, 3));
  line(1, 3, "a3");
  line(2, 3, "b3");
  line(2, 5, "b5");
  line(1, 5, "late");
  heard(reading(2, 5));
  line(2, 5, "c5");
  line(2, 3, "c3");
  heard(reading(1, 3));  // a late reading of the attempt before
  line(2, 3, "d3");
  EXPECT_EQ(shown_, "a3 b3 b5 c5 ");
  EXPECT_EQ(reporting_rank_.not_shown(), 3u);
}

TEST_F(ReportingRankTest, WhatIsBufferedIsBounded) {
  const std::size_t many = ReportingRank::kBufferedLinesMost + 10;
  for (std::size_t i = 0; i < many; ++i) line(1, 1, std::to_string(i));
  EXPECT_EQ(reporting_rank_.not_shown(), many);
  heard(reading(1, 1));
  EXPECT_TRUE(shown_.starts_with("10 11 ")) << shown_.substr(0, 20);
  EXPECT_EQ(reporting_rank_.not_shown(), 10u);

  ReportingRank long_lines;
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 10; ++i) long_lines.on_line(1, 1, megabyte);
  EXPECT_LE(long_lines.on_progress(reading(1, 1)).size() * megabyte.size(),
            ReportingRank::kBufferedBytesMost);
}

}  // namespace
}  // namespace muster::client
