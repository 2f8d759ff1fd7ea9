#include "common/store/selection.h"

#include <gtest/gtest.h>

#include "common/store/manifest.h"

namespace muster::store {
namespace {

bool fits(const std::string& pattern, std::string_view name) {
  const auto selection = Selection::make(std::vector{pattern});
  EXPECT_TRUE(selection) << pattern;
  return selection && selection->has(name);
}
std::string problem(const std::string& pattern) {
  const auto selection = Selection::make(std::vector{pattern});
  return selection ? "" : selection.error().message;
}

TEST(Selection, WithoutPatternsEverythingIsWanted) {
  EXPECT_TRUE(Selection::make({})->has("a/b"));
  EXPECT_TRUE(Selection::make({})->has_everything());
}

TEST(Selection, WithoutASlashItIsTheLastPart) {
  EXPECT_TRUE(fits("*.bin", "a.bin"));
  EXPECT_TRUE(fits("*.bin", "deep/er/a.bin"));
  EXPECT_FALSE(fits("*.bin", "a.bin/x"));
  EXPECT_FALSE(fits("*.bin", "a.bin2"));
  EXPECT_TRUE(fits("a?c", "abc"));
  EXPECT_FALSE(fits("a?c", "a/c"));
}

TEST(Selection, WithOneItIsTheWholeName) {
  EXPECT_TRUE(fits("train/*.bin", "train/a.bin"));
  EXPECT_FALSE(fits("train/*.bin", "x/train/a.bin"));
  EXPECT_FALSE(fits("train/*.bin", "train/x/a.bin"));
  EXPECT_TRUE(fits("train/**.bin", "train/x/a.bin"));
  EXPECT_TRUE(fits("/a", "a"));
  EXPECT_FALSE(fits("/a", "x/a"));
}

TEST(Selection, ADirectoryIsAllBelowIt) {
  EXPECT_TRUE(fits("train/", "train/x/a.bin"));
  EXPECT_FALSE(fits("train/", "train"));
  EXPECT_FALSE(fits("train/", "train2/a"));
}

TEST(Selection, OtherCharactersAreThemselves) {
  EXPECT_TRUE(fits("a\\[1\\].(b)|c+", "a[1].(b)|c+"));
  EXPECT_FALSE(fits("a.b", "axb"));
  EXPECT_TRUE(fits("a\\*", "a*"));
  EXPECT_FALSE(fits("a\\*", "ab"));
  EXPECT_TRUE(fits("é*", "dir/é\u240a.txt"));
  EXPECT_TRUE(fits("*", std::string("a\nb")));
  for (const std::string name : {"a*b", "a?", "back\\slash", "é", "a b/c[1]{2}"}) {
    EXPECT_TRUE(fits(exact_pattern(name), name)) << name;
    EXPECT_FALSE(fits(exact_pattern(name), name + "x")) << name;
    EXPECT_FALSE(fits(exact_pattern(name), "x/" + name)) << name;
  }
}

// A backtracking matcher would need longer than anybody waits.
TEST(Selection, NoPatternTakesLong) {
  std::string pattern, name(200, 'a');
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(fits(pattern + "b", name));
}

TEST(Selection, WhatIsNoPatternIsRefused) {
  EXPECT_EQ(problem(""), "'' is empty");
  EXPECT_EQ(problem("a\\"), "'a\\' ends with a backslash that takes nothing");
  EXPECT_EQ(problem("*.{bin,idx}"),
            "'*.{bin,idx}' has '{': only *, ** and ? stand for others; a backslash before it takes "
            "it as it is");
  EXPECT_EQ(problem("\\[a]").substr(0, 15), "'\\[a]' has ']':");
  EXPECT_EQ(problem(std::string(2000, 'a')).substr(1990),
            "aaaaaaaaaaa' has 2000 bytes, at most 1024");
  EXPECT_EQ(problem("a\xff"), "'a\xff' is no UTF-8");
  const std::vector<std::string> many(65, "a");
  EXPECT_EQ(Selection::make(many).error().message, "has 65 patterns, at most 64");
}

// Regression: what nobody wants, and no node could have, refused the input.
TEST(Selection, OfAListOnlyTheseAreRead) {
  const std::string entry = R"({"Path":"%","Name":"x","Size":1,"IsDir":false})";
  std::string list = "[\n";
  for (const std::string name : {"a.bin", "p", "p/q", "a.idx"})
    list += std::string(entry).replace(9, 1, name) + ",\n";
  list += R"({"Path":"d","Name":"d","Size":-1,"IsDir":true})" + std::string("\n]\n");
  const auto wanted = Selection::make(std::vector<std::string>{"a.*"});
  const auto manifest = parse_listing(list, &*wanted);
  ASSERT_TRUE(manifest) << manifest.error().message;
  ASSERT_EQ(manifest->objects.size(), 2U);
  EXPECT_EQ(manifest->objects[1].name, "a.idx");
  EXPECT_TRUE(manifest->empty.empty());
  EXPECT_FALSE(parse_listing(list)) << "p, and p/q";
}

}  // namespace
}  // namespace muster::store
