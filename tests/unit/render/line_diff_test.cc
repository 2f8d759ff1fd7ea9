// Differences of texts in the form of `diff -u`.
#include "client/render/line_diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace muster::render {
namespace {

std::string diff(std::string_view from, std::string_view to) {
  return line_diff("a", "b", from, to);
}

TEST(LineDiff, AsDiffWritesIt) {
  EXPECT_EQ(diff("x\n", "x\n"), "");
  EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(diff("1\n", "1\n2\n"), "--- a\n+++ b\n@@ -1 +1,2 @@\n 1\n+2\n");
  EXPECT_EQ(diff("1\n2\n", "2\n"), "--- a\n+++ b\n@@ -1,2 +1 @@\n-1\n 2\n");
  EXPECT_EQ(diff("", "1\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+1\n");
  // Two distant changes are two blocks; close ones are one.
  EXPECT_EQ(
      diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
      "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
  EXPECT_EQ(diff("a\n1\n2\n3\n4\nb\n", "A\n1\n2\n3\n4\nB\n"),
            "--- a\n+++ b\n@@ -1,6 +1,6 @@\n-a\n+A\n 1\n 2\n 3\n 4\n-b\n+B\n");
}

// The lines that a difference keeps and removes are the old text; those that it keeps and adds are
// the new text.
TEST(LineDiff, HoldsBothTexts) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string from, to;
    for (int i = 0; i < 12; ++i) {
      const std::string line = fmt::format("{}\n", random() % 5);
      if (random() % 4 != 0) from += line;
      if (random() % 4 != 0) to += line;
    }
    const std::string text = diff(from, to);
    if (text.empty()) {
      EXPECT_EQ(from, to);
      continue;
    }
    // Twelve lines and three of context: if only one block is shown, what is around it is in both
    // texts.
    std::string old_shown, new_shown;
    for (std::size_t at = text.find("@@"); at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at + 1);
      at = end + 1;
      if (line.starts_with("@@")) continue;
      if (line[0] != '+') old_shown += line.substr(1);
      if (line[0] != '-') new_shown += line.substr(1);
    }
    // more than one block
    if (text.find("@@ ", text.find("@@ ") + 4) != std::string::npos &&
        from.find(old_shown) == std::string::npos)
      continue;
    EXPECT_NE(from.find(old_shown), std::string::npos) << text;
    EXPECT_NE(to.find(new_shown), std::string::npos) << text;
  }
}

TEST(LineDiff, TextsWithoutACommonLineAreOneBlock) {
  std::string from, to;
  for (int i = 0; i < 5000; ++i) {
    from += fmt::format("old {}\n", i);
    to += fmt::format("new {}\n", i);
  }
  const std::string text = diff(from, to);
  EXPECT_TRUE(text.starts_with("--- a\n+++ b\n@@ -1,5000 +1,5000 @@\n-old 0\n-old 1\n"))
      << text.substr(0, 100);
  EXPECT_TRUE(text.ends_with("+new 4999\n"));
}

}  // namespace
}  // namespace muster::render
