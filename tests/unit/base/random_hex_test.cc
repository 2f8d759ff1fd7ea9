#include "common/base/random_hex.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RandomHex, HasTwoDigitsForEachByteAndIsAnother) {
  const auto one = random_hex(20, "testing"), two = random_hex(20, "testing");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->size(), 40U);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos) << *one;
  EXPECT_NE(*one, *two);
  EXPECT_EQ(random_hex(0, "testing"), "");
  EXPECT_EQ(random_hex(256, "testing")->size(), 512U);
}

}  // namespace
}  // namespace muster
