#include "common/text/sizes.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Sizes, AreInTheUnitThatFits) {
  EXPECT_EQ(size_text(9'019'431'321), "8.4 GiB");
  EXPECT_EQ(size_text(52'428'800), "50.0 MiB");
  EXPECT_EQ(size_text(0), "0.0 KiB");
}

TEST(Sizes, PartsAreInTheUnitOfTheWhole) {
  EXPECT_EQ(part_text(2'254'857'830, 9'019'431'321), "2.1 of 8.4 GiB");
  EXPECT_EQ(part_text(52'428'800, 9'019'431'321), "0.0 of 8.4 GiB");
  EXPECT_EQ(part_text(999, 512), "0.5 of 0.5 KiB");
}

}  // namespace
}  // namespace muster
