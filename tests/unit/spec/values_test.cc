#include <gtest/gtest.h>

#include <random>

#include "common/engine/text.h"
#include "common/spec/values.h"

namespace muster::spec {
namespace {

using namespace std::chrono_literals;

TEST(Durations, AreReadExactly) {
  EXPECT_EQ(parse_duration("30m").value(), 30min);
  EXPECT_EQ(parse_duration("24h").value(), 24h);
  EXPECT_EQ(parse_duration("1.5s").value(), 1500ms);
  EXPECT_EQ(parse_duration("250ms").value(), 250ms);
  EXPECT_EQ(parse_duration("7d").value(), 168h);
  EXPECT_EQ(parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(parse_duration("0").value(), 0s);
  EXPECT_EQ(parse_duration("0.000000001s").value(), 1ns);
  EXPECT_EQ(parse_duration("0.1d").value(), 144min);
  EXPECT_EQ(parse_duration("10000d").value(), 240000h);
  for (const char* text :
       {"", "30", "s", "-1s", "+1s", "1 s", "1.s", ".5s", "1e3s", "1w", "s1", "1h30", "10001d", "99999999999999999999s", "1.0000000001s", "0x1s", "1s ", "one"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Durations, WhatIsWrittenReadsBack) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Duration duration(static_cast<std::int64_t>(random() % 864'000'000'000'000'000ull >> random() % 60));
    const auto back = parse_duration(format_duration(duration));
    ASSERT_TRUE(back) << format_duration(duration);
    EXPECT_EQ(*back, duration) << format_duration(duration);
  }
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
}

TEST(Sizes, AreReadExactly) {
  EXPECT_EQ(parse_size("1024").value(), 1024u);
  EXPECT_EQ(parse_size("64KiB").value(), 65536u);
  EXPECT_EQ(parse_size("1.5G").value(), 1610612736u);
  EXPECT_EQ(parse_size("2TiB").value(), 2199023255552u);
  for (const char* text : {"", "K", "-1", "1KB", "1 K", "1.5.5G", "99999999999999999999", "16777216T", "1KiBs"}) EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Numbers, HaveBounds) {
  EXPECT_EQ(parse_number("5", 1, 10).value(), 5u);
  EXPECT_EQ(parse_number("007", 1, 10).value(), 7u);
  for (const char* text : {"", "0", "11", "-5", "+5", "5.0", "5x", " 5", "99999999999999999999999"}) EXPECT_FALSE(parse_number(text, 1, 10)) << text;
}

TEST(Shown, IsShortAndPlain) {
  EXPECT_EQ(shown("a\x1b[31m\nb"), "a?[31m?b");
  EXPECT_EQ(shown(std::string(100, 'x')).size(), 63u);
  EXPECT_EQ(shown(std::string(59, 'x') + "\xc3\xa9yyy"), std::string(59, 'x') + "...") << "no half character";
}

TEST(Words, SplitLikeAShells) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(engine::split_words("a  b\tc\n").value(), (Words{"a", "b", "c"}));
  EXPECT_EQ(engine::split_words("a'b c'd \"e \\\" f\" g\\ h ''").value(), (Words{"ab cd", "e \" f", "g h", ""}));
  EXPECT_EQ(engine::split_words("a \\\n b\\\r\n").value(), (Words{"a", "b"}));
  EXPECT_EQ(engine::split_words("--re 'a|b;c' \"x > y\" \\&").value(), (Words{"--re", "a|b;c", "x > y", "&"}));
  EXPECT_EQ(engine::split_words("").value(), Words{});
  EXPECT_EQ(engine::split_words("a\\ b ' c'").value(), (Words{"a b", " c"}));
  for (const char* text : {"'", "\"", "a\\", "a | b", "a && b", "a; b", "a > b", "a <b", "\"a\\\"", "a \\ --b"}) EXPECT_FALSE(engine::split_words(text)) << text;
}

TEST(Words, QuotedWordsReadBack) {
  std::mt19937 random(9);
  for (int i = 0; i < 5'000; ++i) {
    std::vector<std::string> words(random() % 5);
    std::string text;
    for (std::string& word : words) {
      for (std::uint32_t k = random() % 8; k > 0; --k) word.push_back(static_cast<char>(1 + random() % 126));
      text += "'";
      for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
      text += "' ";
    }
    EXPECT_EQ(engine::split_words(text).value(), words);
  }
}

TEST(EditDistance, IsAMetricOnSmallWords) {
  EXPECT_EQ(engine::edit_distance("nodes", "nodse"), 1u);
  EXPECT_EQ(engine::edit_distance("", "abc"), 3u);
  std::mt19937 random(11);
  const auto word = [&] {
    std::string text;
    for (std::uint32_t k = random() % 6; k > 0; --k) text.push_back(static_cast<char>('a' + random() % 3));
    return text;
  };
  for (int i = 0; i < 3'000; ++i) {
    const std::string a = word(), b = word();
    EXPECT_EQ(engine::edit_distance(a, b), engine::edit_distance(b, a));
    EXPECT_EQ(engine::edit_distance(a, b) == 0, a == b);
    EXPECT_LE(engine::edit_distance(a, b), std::max(a.size(), b.size()));
  }
}

}  // namespace
}  // namespace muster::spec
