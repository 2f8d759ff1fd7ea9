#include "agent/logs/line_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace muster::agent {
namespace {

std::vector<std::string> scan(std::string_view text, const std::vector<std::size_t>& cuts) {
  std::vector<std::string> lines;
  LineScanner scanner;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    scanner.feed(text.substr(at, cut - at), keep);
    at = cut;
  }
  scanner.feed(text.substr(at), keep);
  scanner.finish(keep);
  return lines;
}

// The definition, byte by byte.
std::vector<std::string> plain(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  const auto end = [&] {
    if (!line.empty()) lines.push_back(line.substr(0, LineScanner::kMost));
    line.clear();
  };
  for (const char byte : text) {
    if (byte == '\n' || byte == '\r') {
      end();
    } else {
      line += byte;
    }
  }
  end();
  return lines;
}

TEST(LineScanner, progress_bars_and_both_line_ends) {
  EXPECT_EQ(scan("a\r\nb\rc\n\n\nd", {}), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(LineScanner, a_text_cut_anywhere_gives_the_same_lines) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    const std::size_t size = random() % 400;
    while (text.size() < size) text += "abc\n\r\0x"[random() % 7];
    std::vector<std::size_t> cuts;
    for (std::size_t at = 0; at <= text.size(); ++at) {
      if (random() % 4 == 0) cuts.push_back(at);
    }
    ASSERT_EQ(scan(text, cuts), plain(text)) << "seed " << seed;
  }
}

TEST(LineScanner, of_a_long_line_the_beginning) {
  const std::string text = std::string(LineScanner::kMost + 5000, 'x') + "\ny\n";
  EXPECT_EQ(scan(text, {}), plain(text));
  EXPECT_EQ(
      scan(text, {10, LineScanner::kMost - 1, LineScanner::kMost + 1, LineScanner::kMost + 4000}),
      plain(text));
  LineScanner scanner;
  scanner.feed(std::string_view(text).substr(0, LineScanner::kMost + 100), [](std::string_view) {});
  EXPECT_EQ(scanner.buffered_bytes(), LineScanner::kMost + 100);
}

}  // namespace
}  // namespace muster::agent
