// Files and values that are made to be expensive, or to break what is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/compat/patch/patch.h"
#include "common/compat/patch/path.h"

namespace muster::patch {
namespace {

std::string why(const Result<std::string>& result) {
  return result ? "changed: " + result->substr(0, 200) : result.error().message;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// The classic: nine lines that expand to a billion words. Shared parts stay shared.
TEST(HostileFiles, ManyLaughsStayAFewLines) {
  std::string text = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (char c = 'b'; c <= 'z'; ++c)
    text += fmt::format("{0}: &{0} [{1}]\n", c,
                        repeated(fmt::format("*{},", static_cast<char>(c - 1)), 9));
  const auto changed =
      changed_file("a.yaml", text, std::vector<Change>{{"z[0]", "1"}, {"a[0]", "2"}});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_LT(changed->size(), 20'000u);
  EXPECT_NE(changed->find("a: &a\n  - 2\n"), std::string::npos);
}

// In JSON, such a value would have to be expanded.
TEST(HostileFiles, ManyLaughsAsAValueOfJsonAreRefused) {
  std::string value = "{a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]";
  for (char c = 'b'; c <= 'z'; ++c)
    value += fmt::format(", {0}: &{0} [{1}]", c,
                         repeated(fmt::format("*{},", static_cast<char>(c - 1)), 9));
  const auto changed = changed_file("a.json", "{}", std::vector<Change>{{"x", value + "}"}});
  EXPECT_EQ(why(changed), "changing 'a.json': the result is too deep or too long");
}

// A map that merges the one before it twice, sixty times: each is visited once.
TEST(HostileFiles, MergesOfMergesAreVisitedOnce) {
  std::string text = "m0: &m0 {deep: {x: 1}}\n";
  for (int i = 1; i <= 60; ++i)
    text += fmt::format("m{0}: &m{0} {{<<: [*m{1}, *m{1}]}}\n", i, i - 1);
  const auto changed = changed_file("a.yaml", text, std::vector<Change>{{"m60.deep.x", "2"}});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_NE(changed->find("x: 2"), std::string::npos);
  EXPECT_NE(why(changed_file("a.yaml", text, std::vector<Change>{{"m60.missing.x", "2"}}))
                .find("'m60' has no 'missing'"),
            std::string::npos);
}

// Ten thousand items that all merge one map of ten thousand keys.
TEST(HostileFiles, ItemsThatShareALargeMapAreFoundInOneVisit) {
  std::string text = "big: &big\n";
  for (int i = 0; i < 10'000; ++i) text += fmt::format("  k{}: {}\n", i, i);
  text += "list:\n";
  for (int i = 0; i < 10'000; ++i) text += "  - {<<: *big}\n";
  EXPECT_NE(why(changed_file("a.yaml", text, std::vector<Change>{{"list[type=x].a", "1"}}))
                .find("'list' has no item with type: x"),
            std::string::npos);
}

TEST(HostileFiles, BoundsAreReported) {
  const std::vector<Change> change = {{"a", "1"}};
  EXPECT_EQ(why(changed_file("a.yaml", std::string(kFileBytesMax + 1, 'x'), change)),
            "changing 'a.yaml': it has 4194305 bytes, at most 4194304");
  EXPECT_NE(
      why(changed_file("a.yaml", "a: " + std::string(100, '[') + std::string(100, ']'), change))
          .find("nested deeper than 64 levels"),
      std::string::npos);
  EXPECT_NE(why(changed_file("a.yaml", "a: " + std::string(100'000, '['), change))
                .find("changing 'a.yaml': this is not read: line 1"),
            std::string::npos);
  EXPECT_EQ(why(changed_file("a.json", std::string(100'000, '['), change)),
            "changing 'a.json': it is nested deeper than 64 levels");
  EXPECT_NE(why(changed_file("a.yaml", "[" + repeated("1,", kNodesMax) + "]", change))
                .find("more than 200000 values"),
            std::string::npos);
  EXPECT_EQ(why(changed_file("a.json", "[" + repeated("1,", kNodesMax) + "1]", change)),
            "changing 'a.json': it has more than 200000 values");
  EXPECT_EQ(why(changed_file("a.yaml", "a: 1",
                             std::vector<Change>{{"a", std::string(kValueBytesMax + 1, 'x')}})),
            "changing 'a' of 'a.yaml': its value has 65537 bytes, at most 65536");
  EXPECT_NE(
      why(changed_file("a.yaml", "a: 1", std::vector<Change>{{repeated("a.", 64) + "a", "1"}}))
          .find("has more than 64 parts"),
      std::string::npos);
  EXPECT_NE(why(changed_file("a.yaml", "a: 1", std::vector<Change>{{std::string(2000, 'a'), "1"}}))
                .find("has 2000 bytes, at most 1024"),
            std::string::npos);
}

// A value may be as deep as a file, at the bottom of one. What is too deep to be read again is not
// written.
TEST(HostileFiles, DepthAddsUpToABound) {
  std::string text = "a: 1\n", at = "a", value = std::string(60, '[') + std::string(60, ']');
  std::vector<Change> changes;
  for (int i = 0; i < 4; ++i) {
    changes.push_back({at, value});
    at += repeated("[0]", 15);
  }
  EXPECT_NE(why(changed_file("a.yaml", text, changes)).substr(0, 9), "")
      << "answered, one way or the other";
  const auto once = changed_file("a.yaml", text, std::vector<Change>{changes[0]});
  EXPECT_TRUE(once) << once.error().message;
}

TEST(HostileFiles, BytesThatAreNoText) {
  const std::vector<Change> change = {{"a", "1"}};
  EXPECT_EQ(why(changed_file("a.yaml", "a: \xff", change)),
            "changing 'a.yaml': it is not UTF-8 text");
  EXPECT_EQ(why(changed_file("a.yaml", std::string_view("a: \0", 4), change)),
            "changing 'a.yaml': it is not UTF-8 text");
  EXPECT_EQ(why(changed_file("a.json", "{\"a\": \"\xff\"}", change)),
            "changing 'a.json': it is not UTF-8 text");
  EXPECT_EQ(why(changed_file("a\n.yaml", "[", change)).substr(0, 18), "changing 'a?.yaml'");
}

TEST(Paths, AreWrittenAsTheyAreRead) {
  for (const std::string text : {"a", "a.b.c", "a[0]", "a[type=X].b", "[0][1].a", "a\\.b.c\\[0\\]",
                                 "a[k\\=e=v\\]]", "a[type=x.y=z].b"}) {
    const auto steps = parse_path(text);
    ASSERT_TRUE(steps) << steps.error().message;
    EXPECT_EQ(path_text(*steps, steps->size()), text);
  }
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[1",
                           "a[=x]", "a[0]b", "a.[0]", "a[99999999999999999999]"}) {
    const auto steps = parse_path(text);
    EXPECT_FALSE(steps) << text;
    if (!steps) {
      EXPECT_NE(steps.error().message.find("(a.b.c | list[2] | list[type=NAME].key)"),
                std::string::npos)
          << steps.error().message;
    }
  }
}

}  // namespace
}  // namespace muster::patch
