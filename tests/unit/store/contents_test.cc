#include "common/store/contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace muster::store {
namespace {

const std::string kSha256(64, 'a'), kOther(64, 'b');

Contents contents(std::vector<Content> objects, std::vector<std::string> empty = {},
                  bool is_file = false) {
  return {.is_file = is_file, .objects = std::move(objects), .empty = std::move(empty)};
}

TEST(Contents, TheirTextIsReadAgain) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const Contents& whole : {contents({{"a b", 1, kSha256}, {"c/d", 0, kOther}}, {"e", "f/g"}),
                                contents({{"new\u240aline", kMost, kSha256}}, {}, true),
                                contents({}, {"x"}), contents({})}) {
    const auto read = parse_contents(whole.text());
    ASSERT_TRUE(read) << whole.text();
    EXPECT_EQ(read->is_file, whole.is_file);
    EXPECT_EQ(read->objects, whole.objects);
    EXPECT_EQ(read->empty, whole.empty);
    EXPECT_EQ(read->sha256(), whole.sha256());
  }
  EXPECT_EQ(contents({{"a", kMost, kSha256}, {"b", 1, kSha256}}).bytes(), kMost);
}

TEST(Contents, TheirDigestIsThatOfAllOfThem) {
  const std::string one = contents({{"a", 1, kSha256}}).sha256();
  EXPECT_EQ(one, contents({{"a", 1, kSha256}}).sha256());
  EXPECT_NE(one, contents({{"b", 1, kSha256}}).sha256());
  EXPECT_NE(one, contents({{"a", 2, kSha256}}).sha256());
  EXPECT_NE(one, contents({{"a", 1, kOther}}).sha256());
  EXPECT_NE(one, contents({{"a", 1, kSha256}}, {"b"}).sha256());
  EXPECT_NE(one, contents({{"a", 1, kSha256}}, {}, true).sha256());
}

// A node may have kept it for long, and files are made of its names.
TEST(Contents, ATextThatIsNoneIsRefused) {
  const std::string size = "1 " + kSha256 + "\n", head = "directory\n";
  for (const std::string& text :
       std::vector<std::string>{"",
                                "directory",
                                "file\n",
                                "folder\na\n" + size,
                                head + "a\n",
                                head + "a\n1 \n",
                                head + "a\nx " + kSha256 + "\n",
                                head + "a\n-1 " + kSha256 + "\n",
                                head + "a\n1 " + kSha256,
                                head + "a\n1 " + kSha256 + " \n",
                                head + "a\n1  " + kSha256 + "\n",
                                head + "../a\n" + size,
                                head + "/a\n" + size,
                                head + "../\n",
                                head + "b\n" + size + "a\n" + size,
                                head + "a\n" + size + "a\n" + size,
                                head + "a\n" + size + "a/b\n" + size,
                                head + "a\n" + size + "a/\n",
                                head + "e/\na\n" + size,
                                head + "f/\ne/\n",
                                "file\na\n" + size + "b\n" + size,
                                head + "a\n18446744073709551616 " + kSha256 + "\n",
                                head + "a\n1 " + std::string(64, 'A') + "\n"})
    EXPECT_FALSE(parse_contents(text)) << text;
}

}  // namespace
}  // namespace muster::store
