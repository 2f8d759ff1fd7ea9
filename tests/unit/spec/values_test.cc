#include <gtest/gtest.h>

#include <random>

#include "common/spec/keys/values.h"
#include "common/spec/strings.h"
#include "common/text/words.h"

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
       {"", "30", "s", "-1s", "+1s", "1 s", "1.s", ".5s", "1e3s", "1w", "s1", "1h30", "10001d",
        "99999999999999999999s", "1.0000000001s", "0x1s", "1s ", "one"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Durations, WhatIsWrittenReadsBack) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Duration duration(
        static_cast<std::int64_t>(random() % 864'000'000'000'000'000ull >> random() % 60));
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
  for (const char* text :
       {"", "K", "-1", "1KB", "1 K", "1.5.5G", "99999999999999999999", "16777216T", "1KiBs"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Numbers, HaveBounds) {
  EXPECT_EQ(parse_number("5", 1, 10).value(), 5u);
  EXPECT_EQ(parse_number("007", 1, 10).value(), 7u);
  for (const char* text : {"", "0", "11", "-5", "+5", "5.0", "5x", " 5", "99999999999999999999999"})
    EXPECT_FALSE(parse_number(text, 1, 10)) << text;
}

TEST(Shown, IsShortAndPlain) {
  EXPECT_EQ(shown("a\x1b[31m\nb"), "a?[31m?b");
  EXPECT_EQ(shown(std::string(100, 'x')).size(), 63u);
  EXPECT_EQ(shown(std::string(59, 'x') + "\xc3\xa9yyy"), std::string(59, 'x') + "...")
      << "no half character";
}

// A terminal obeys U+009B as it obeys ESC [, and the name of a file may contain it.
TEST(Shown, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(shown("a\u009b2J\xe2\x80\xae"), "a?2J?");
  EXPECT_EQ(readable("a\u009b2J\n\x1b\xff\t"), "a?2J\n???");
  EXPECT_EQ(shown(std::string(59, 'x') + "\xc2\x9b"), std::string(59, 'x') + "...")
      << "cut within it";
}

// Regression: every user's `muster show` printed the output_dir of a submitter, which could set the
// title of their terminals.
TEST(Lines, PathsAndNamesHaveNoControlCharacters) {
  v1::JobSpec spec;
  EXPECT_TRUE(lines_with_controls(spec).empty());
  const std::string bad = "/a\x1b]0;title\x07";
  spec.set_output_dir(bad);
  spec.mutable_code()->set_at("/a\u009b2J");
  spec.mutable_checkpoint()->set_dir("/a\n");
  spec.mutable_launch()->set_script(bad);
  spec.mutable_launch()->set_cwd(bad);
  spec.mutable_launch()->set_config(bad);
  spec.mutable_launch()->add_patch()->set_file(bad);
  spec.mutable_runtime()->set_python(bad);
  spec.mutable_network()->set_interface(bad);
  spec.mutable_resources()->add_hosts("n1");
  spec.mutable_resources()->add_hosts(bad);
  spec.mutable_resources()->mutable_rank_table()->set_name(bad);
  spec.mutable_success()->set_file(bad);
  EXPECT_EQ(lines_with_controls(spec),
            (std::vector<std::string>{"code.at", "runtime.python", "launch.script", "launch.cwd",
                                      "launch.config", "launch.patch.file", "resources.hosts[1]",
                                      "resources.rank_table.name", "network.interface",
                                      "checkpoint.dir", "success.file", "output_dir"}));
}

TEST(Lines, WhatMayHaveLineEndsKeepsThem) {
  v1::JobSpec spec;
  spec.set_description("two\nlines");
  spec.mutable_launch()->add_run("a\tb\n");
  spec.mutable_launch()->add_args("a\nb");
  (*spec.mutable_launch()->mutable_vars())["NAME"] = "a\nb";
  (*spec.mutable_runtime()->mutable_env())["PS1"] = "\x1b[1m";
  spec.mutable_runtime()->add_setup("cd x\nmake\n");
  v1::ConfigChange& change = *spec.mutable_launch()->add_patch()->add_changes();
  change.set_at("a.b");
  change.set_value("- 1\n- 2\n");
  spec.mutable_observe()->set_step("step\t(\\d+)");
  spec.mutable_success()->set_regex("done\t");
  spec.mutable_resources()->mutable_rank_table()->set_content("{\n}");
  EXPECT_TRUE(lines_with_controls(spec).empty());
}

TEST(Words, SplitLikeAShells) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_words("a  b\tc\n").value(), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_words("a'b c'd \"e \\\" f\" g\\ h ''").value(),
            (Words{"ab cd", "e \" f", "g h", ""}));
  EXPECT_EQ(split_words("a \\\n b\\\r\n").value(), (Words{"a", "b"}));
  EXPECT_EQ(split_words("--re 'a|b;c' \"x > y\" \\&").value(),
            (Words{"--re", "a|b;c", "x > y", "&"}));
  EXPECT_EQ(split_words("").value(), Words{});
  EXPECT_EQ(split_words("a\\ b ' c'").value(), (Words{"a b", " c"}));
  for (const char* text :
       {"'", "\"", "a\\", "a | b", "a && b", "a; b", "a > b", "a <b", "\"a\\\"", "a \\ --b"})
    EXPECT_FALSE(split_words(text)) << text;
}

TEST(Words, QuotedWordsReadBack) {
  std::mt19937 random(9);
  for (int i = 0; i < 5'000; ++i) {
    std::vector<std::string> words(random() % 5);
    std::string text;
    for (std::string& word : words) {
      for (std::uint32_t k = random() % 8; k > 0; --k)
        word.push_back(static_cast<char>(1 + random() % 126));
      text += "'";
      for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
      text += "' ";
    }
    EXPECT_EQ(split_words(text).value(), words);
  }
}

TEST(EditDistance, IsAMetricOnSmallWords) {
  EXPECT_EQ(edit_distance("nodes", "nodse"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  std::mt19937 random(11);
  const auto word = [&] {
    std::string text;
    for (std::uint32_t k = random() % 6; k > 0; --k)
      text.push_back(static_cast<char>('a' + random() % 3));
    return text;
  };
  for (int i = 0; i < 3'000; ++i) {
    const std::string a = word(), b = word();
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    EXPECT_EQ(edit_distance(a, b) == 0, a == b);
    EXPECT_LE(edit_distance(a, b), std::max(a.size(), b.size()));
  }
}

}  // namespace
}  // namespace muster::spec
