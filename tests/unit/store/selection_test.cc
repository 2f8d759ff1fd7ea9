#include "common/store/selection.h"

#include <gtest/gtest.h>

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
  Manifest manifest{.objects = {{.name = "a"}}, .empty = {"d"}};
  Selection::make({})->select(manifest);
  EXPECT_EQ(manifest.objects.size(), 1U);
  EXPECT_EQ(manifest.empty.size(), 1U);
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
  EXPECT_TRUE(fits("a[1].(b)|c+", "a[1].(b)|c+"));
  EXPECT_FALSE(fits("a.b", "axb"));
  EXPECT_TRUE(fits("a\\*", "a*"));
  EXPECT_FALSE(fits("a\\*", "ab"));
  EXPECT_TRUE(fits("é*", "dir/é\u240a.txt"));
  EXPECT_TRUE(fits("*", std::string("a\nb")));
  for (const std::string name : {"a*b", "a?", "back\\slash", "é", "a b/c[1]"}) {
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
  EXPECT_EQ(problem(std::string(2000, 'a')).substr(1990),
            "aaaaaaaaaaa' has 2000 bytes, at most 1024");
  EXPECT_EQ(problem("a\xff"), "'a\xff' is no UTF-8");
  const std::vector<std::string> many(65, "a");
  EXPECT_EQ(Selection::make(many).error().message, "has 65 patterns, at most 64");
}

TEST(Selection, OfAListOnlyTheseAreLeft) {
  Manifest manifest{.objects = {{.name = "a.bin"}, {.name = "a.idx"}, {.name = "b"}},
                    .empty = {"d"}};
  Selection::make(std::vector<std::string>{"a.*"})->select(manifest);
  ASSERT_EQ(manifest.objects.size(), 2U);
  EXPECT_EQ(manifest.objects[1].name, "a.idx");
  EXPECT_TRUE(manifest.empty.empty());
}

}  // namespace
}  // namespace muster::store
