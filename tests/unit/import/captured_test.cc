#include "client/import/captured.h"

#include <gtest/gtest.h>

namespace muster::import {
namespace {

TEST(Captured, ComesBackAsItWas) {
  const Captured call{.directory = "/a b",
                      .words = {"torchrun", "", "a\nb", "\xff"},
                      .env = {{"A", ""}, {"B", "x=y"}, {"C", "two\nlines"}}};
  const std::string bytes = to_bytes(call);
  const auto again = from_bytes(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->directory, call.directory);
  EXPECT_EQ(again->words, call.words);
  EXPECT_EQ(again->env, call.env);
  const std::size_t variables = bytes.find("A=");
  for (std::size_t length = 0; length < variables; ++length)
    EXPECT_FALSE(from_bytes(std::string_view(bytes).substr(0, length))) << length;
}

TEST(Captured, DamagedRecordsAreNone) {
  for (const std::string& bytes : {std::string("/a\0x\0", 5),
                                   std::string("/a\0"
                                               "0\0",
                                               5),
                                   std::string("/a\0"
                                               "99999999999999999999\0",
                                               24),
                                   std::string("/a\0"
                                               "2\0w\0",
                                               7),
                                   std::string("/a\0"
                                               "-1\0",
                                               6)})
    EXPECT_FALSE(from_bytes(bytes));
}

TEST(Captured, ARankIsWhatTheScriptHasNumbered) {
  EXPECT_TRUE(is_rank({{"RANK_ID", "0"}}, {}));
  EXPECT_TRUE(is_rank({{"RANK", "1"}}, {{"RANK", "0"}}));
  EXPECT_TRUE(is_rank({{"MS_ROLE", "MS_SCHED"}}, {}));
  EXPECT_FALSE(is_rank({{"RANK", "0"}}, {{"RANK", "0"}}))
      << "a platform's own, there before the script";
  EXPECT_FALSE(is_rank({{"RANK", ""}, {"LOCAL_RANK", "1"}}, {}));
}

}  // namespace
}  // namespace muster::import
