#include "client/commands/follow/line_cutter.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::client {
namespace {

class LineCutterTest : public testing::Test {
 protected:
  void add(LineCutter& cutter, std::uint32_t attempt, std::uint32_t rank, std::string_view data) {
    cutter.add({.attempt = attempt, .rank = rank}, data,
               [&](std::string_view line) { lines_.emplace_back(line); });
  }
  std::vector<std::string> lines_;
};

TEST_F(LineCutterTest, CutsTheSameWhereverTheChunksEnd) {
  const std::string text = "one\n\ntwo and a half\nthree\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineCutter cutter;
    lines_.clear();
    add(cutter, 1, 0, text.substr(0, cut));
    add(cutter, 1, 0, text.substr(cut));
    EXPECT_EQ(lines_, (std::vector<std::string>{"one", "", "two and a half", "three"})) << cut;
  }
}

TEST_F(LineCutterTest, RanksAndAttemptsDoNotMix) {
  LineCutter cutter;
  add(cutter, 1, 0, "a");
  add(cutter, 1, 1, "b");
  add(cutter, 2, 0, "c\n");
  add(cutter, 1, 0, "A\n");
  EXPECT_EQ(lines_, (std::vector<std::string>{"c", "aA"}));
}

TEST_F(LineCutterTest, WhatIsOfNoRankIsNobodyElses) {
  LineCutter cutter;
  const auto of = [&](const LogLabel& log, std::string_view data) {
    cutter.add(log, data, [&](std::string_view line) {
      lines_.push_back(log.text() + ": " + std::string(line));
    });
  };
  of({.attempt = 1, .rank = 0}, "r");
  of({.attempt = 1, .rank = 0, .auxiliary = "setup", .node = "a"}, "sa");
  of({.attempt = 1, .rank = 0, .auxiliary = "setup", .node = "b"}, "sb\n");
  of({.attempt = 1, .rank = 0, .auxiliary = "scheduler", .node = "a"}, "x\n");
  of({.attempt = 1, .rank = 0, .auxiliary = "setup", .node = "a"}, "!\n");
  of({.attempt = 1, .rank = 0}, "\n");
  EXPECT_EQ(lines_, (std::vector<std::string>{"b setup: sb", "a scheduler: x", "a setup: sa!",
                                              "rank 0: r"}));
}

TEST_F(LineCutterTest, WhatHasNoNewlineComesAtTheEnd) {
  LineCutter cutter;
  add(cutter, 1, 3, "done\nno end");
  add(cutter, 2, 4, "nor here");
  const auto each = [&](std::string_view line) { lines_.emplace_back(line); };
  cutter.end({.attempt = 1, .rank = 3}, each);
  cutter.end({.attempt = 1, .rank = 3}, each);
  cutter.end({.attempt = 1, .rank = 9}, each);
  EXPECT_EQ(lines_, (std::vector<std::string>{"done", "no end"}));
  std::vector<std::string> rest;
  const auto every = [&](const LogLabel& log, std::string_view line) {
    rest.push_back(std::to_string(log.attempt) + "." + std::to_string(log.rank) + " " +
                   std::string(line));
  };
  cutter.end_all(every);
  cutter.end_all(every);
  EXPECT_EQ(rest, (std::vector<std::string>{"2.4 nor here"}));
}

// Regression: a rank that wrote 400 MB without a newline cost the reader 1.5 GB.
TEST_F(LineCutterTest, ALineWithoutEndIsGivenInPieces) {
  LineCutter cutter(10);
  add(cutter, 1, 0, "0123456789");
  EXPECT_TRUE(lines_.empty());
  add(cutter, 1, 0, "a");
  EXPECT_EQ(lines_, (std::vector<std::string>{"0123456789"}));
  add(cutter, 1, 0, "b\nc\n");
  EXPECT_EQ(lines_, (std::vector<std::string>{"0123456789", "ab", "c"}));
}

TEST_F(LineCutterTest, PiecesAreTheSameWhereverTheChunksEnd) {
  const std::string text = "0123456789\n0123456789abcdefghij\n\n0123456789abcdefghijk\nshort\n";
  const std::vector<std::string> wanted = {"0123456789", "0123456789", "abcdefghij", "",
                                           "0123456789", "abcdefghij", "k",          "short"};
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineCutter cutter(10);
    lines_.clear();
    add(cutter, 1, 0, text.substr(0, cut));
    add(cutter, 1, 0, text.substr(cut));
    EXPECT_EQ(lines_, wanted) << cut;
  }
}

// Regression: nothing of a progress bar was shown until its line ended, and then "10%?20%?30%" at
// once.
class ReturnsTest : public LineCutterTest {
 protected:
  void add(LineCutter& cutter, std::string_view data) {
    cutter.add({.attempt = 1, .rank = 0}, data, [&](std::string_view line, bool redrawn) {
      lines_.push_back(std::string(line) + (redrawn ? "<" : ""));
    });
  }
};

TEST_F(ReturnsTest, StatesOfALineAreTheSameWhereverTheChunksEnd) {
  const std::string text = "one\r\n\r10%\r20%\r\r30%\rdone\n\r\rx\r\r\ny\r\n\n0123456789a\rb\n";
  const std::vector<std::string> wanted = {"one", "10%<", "20%<",       "30%<", "done", "x",
                                           "y",   "",     "0123456789", "a<",   "b"};
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t second = cut; second <= text.size(); ++second) {
      LineCutter cutter(10, Returns::Cut);
      lines_.clear();
      add(cutter, text.substr(0, cut));
      add(cutter, text.substr(cut, second - cut));
      add(cutter, text.substr(second));
      ASSERT_EQ(lines_, wanted) << cut << " " << second;
    }
  }
}

TEST_F(ReturnsTest, WhatStandsThereNowCanBeShown) {
  const LogLabel log{.attempt = 1, .rank = 0};
  LineCutter cutter(10, Returns::Cut);
  EXPECT_EQ(cutter.rest(log), "");
  add(cutter, "x\n10%");
  EXPECT_EQ(cutter.rest(log), "10%");
  add(cutter, "\r");
  EXPECT_EQ(cutter.rest(log), "10%") << "whether it is redrawn or ends, the next byte says";
  add(cutter, "20%\r");
  EXPECT_EQ(lines_, (std::vector<std::string>{"x", "10%<"}));
  EXPECT_EQ(cutter.rest(log), "20%");
  cutter.end(log, [&](std::string_view line) { lines_.emplace_back(line); });
  EXPECT_EQ(lines_.back(), "20%");
}

TEST_F(LineCutterTest, ACarriageReturnIsAByteForAPipe) {
  LineCutter cutter;
  add(cutter, 1, 0, "10%\r");
  add(cutter, 1, 0, "20%\r\n");
  EXPECT_EQ(lines_, (std::vector<std::string>{"10%\r20%\r"}));
}

}  // namespace
}  // namespace muster::client
