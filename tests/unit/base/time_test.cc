#include "common/base/time.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(UtcText, IsTheWholeSecond) {
  using namespace std::chrono;
  const WallTime day = sys_days(year(2026) / 11 / 26);
  EXPECT_EQ(utc_text(day), "2026-11-26T00:00:00Z");
  EXPECT_EQ(utc_text(day + hours(23) + minutes(59) + milliseconds(59'999)), "2026-11-26T23:59:59Z");
  EXPECT_EQ(utc_text(WallTime(nanoseconds(-1))), "1969-12-31T23:59:59Z");
  EXPECT_EQ(utc_text(WallTime::max()), "2262-04-11T23:47:16Z");
}

}  // namespace
}  // namespace muster
