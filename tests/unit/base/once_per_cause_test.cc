#include "common/base/once_per_cause.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(OncePerCause, ReportsACauseOnceUntilItIsOver) {
  OncePerCause trouble;
  EXPECT_FALSE(trouble.reported());
  EXPECT_TRUE(trouble.first("disk full"));
  EXPECT_FALSE(trouble.first("disk full"));
  EXPECT_TRUE(trouble.reported());
  EXPECT_TRUE(trouble.over());
  EXPECT_FALSE(trouble.reported());
  EXPECT_FALSE(trouble.over()) << "its end is reported once, too";
  EXPECT_TRUE(trouble.first("disk full"));
}

TEST(OncePerCause, AnotherCauseTakesItsPlace) {
  OncePerCause trouble;
  EXPECT_TRUE(trouble.first("disk full"));
  EXPECT_TRUE(trouble.first("no permission"));
  EXPECT_FALSE(trouble.first("no permission"));
  EXPECT_TRUE(trouble.first("disk full"));
}

TEST(OncePerCause, TroubleWithOneCause) {
  OncePerCause trouble;
  EXPECT_TRUE(trouble.first());
  EXPECT_FALSE(trouble.first());
  EXPECT_TRUE(trouble.reported());
  EXPECT_TRUE(trouble.over());
  EXPECT_TRUE(trouble.first());
}

}  // namespace
}  // namespace muster
