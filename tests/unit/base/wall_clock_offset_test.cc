#include "common/base/wall_clock_offset.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(WallClockOffset, IsMillisecondsOfAtMost24Days) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse_wall_clock_offset(""), Duration{});
  EXPECT_EQ(parse_wall_clock_offset("-1500"), Duration(milliseconds(-1500)));
  EXPECT_EQ(parse_wall_clock_offset("2147483647"), Duration(milliseconds(2'147'483'647)));
  // It counted as no offset, so a test with a certificate of a year was one without its fault.
  for (const char* text : {"2147483648", "-2147483649", "31536000000", "x", "1s", " 1", "+1"}) {
    const auto offset = parse_wall_clock_offset(text);
    ASSERT_FALSE(offset) << text;
    EXPECT_EQ(offset.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(offset.error().message.find("MUSTER_WALL_CLOCK_OFFSET_MS='" + std::string(text)),
              std::string::npos);
  }
}

}  // namespace
}  // namespace muster
