#include "controller/listen/unread_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;

TEST(UnreadAnswers, OfOneNameAreBounded) {
  std::vector<std::string> lines;
  UnreadAnswers answers([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(answers.add("user 'ann'", "/a/B", 16 * kMiB));
  EXPECT_FALSE(answers.add("user 'ann'", "/a/B", 1));
  EXPECT_FALSE(answers.add("user 'ann'", "/a/B", 1)) << "there is one line for each name";
  EXPECT_TRUE(answers.add("user 'bob'", "/a/B", 16 * kMiB)) << "each has his own bound";
  EXPECT_THAT(lines, ElementsAre(HasSubstr("a call of user 'ann' to '/a/B' was ended")));

  answers.remove("user 'ann'", 16 * kMiB);
  EXPECT_TRUE(answers.add("user 'ann'", "/a/B", 16 * kMiB)) << "one was read";
  answers.remove("user 'ann'", 64 * kMiB);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(answers.add("user 'ann'", "/a/B", 16 * kMiB));
  EXPECT_FALSE(answers.add("user 'ann'", "/a/B", 1));
  EXPECT_EQ(lines.size(), 2U) << "all had been read, so it is said again";
}

TEST(UnreadAnswers, OneAloneIsNeverTooMuch) {
  UnreadAnswers answers([](const std::string&) {});
  EXPECT_TRUE(answers.add("user 'ann'", "/a/B", 2 * UnreadAnswers::kOfOwnerMost));
  EXPECT_FALSE(answers.add("user 'ann'", "/a/B", 1));
  answers.remove("user 'ann'", 2 * UnreadAnswers::kOfOwnerMost);
  EXPECT_TRUE(answers.add("user 'ann'", "/a/B", 1));
}

}  // namespace
}  // namespace muster::controller
