#include "agent/core/clock_skew.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/proto/proto_time.h"

namespace muster::agent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Now kNow{.wall = WallTime(hours(500'000)), .boot = BootTime(hours(10))};

std::optional<Duration> skew(Duration controller_behind, Duration round_trip = milliseconds(2)) {
  v1::HeartbeatAck ack;
  *ack.mutable_at() = to_proto(kNow.wall - controller_behind);
  return clock_skew(ack, kNow.boot - round_trip, kNow);
}

TEST(ClockSkew, IsReportedFromAMinuteOn) {
  EXPECT_EQ(skew(seconds(0)), std::nullopt);
  EXPECT_EQ(skew(seconds(60)), std::nullopt);
  EXPECT_EQ(skew(seconds(-60)), std::nullopt);
  EXPECT_EQ(skew(seconds(75), seconds(0)), seconds(75)) << "ahead";
  EXPECT_EQ(skew(seconds(-75)), seconds(-75)) << "behind";
}

// The controller answered up to a round trip ago: so much later the node's clock reads anyway.
TEST(ClockSkew, IsNotTheTimeThatTheAnswerTook) {
  EXPECT_EQ(skew(seconds(75), seconds(20)), std::nullopt);
  EXPECT_EQ(skew(seconds(75), seconds(10)), seconds(65)) << "it is that much at least";
  EXPECT_EQ(skew(seconds(-75), seconds(20)), seconds(-75)) << "the answer makes it no smaller";
}

TEST(ClockSkew, OfWildTimesIsNoOverflow) {
  v1::HeartbeatAck ack;
  EXPECT_EQ(clock_skew(ack, kNow.boot, kNow), std::nullopt) << "no time";
  ack.mutable_at()->set_seconds(std::numeric_limits<std::int64_t>::min());
  ack.mutable_at()->set_nanos(-1);
  EXPECT_GT(clock_skew(ack, kNow.boot, kNow), seconds(60));
  ack.mutable_at()->set_seconds(std::numeric_limits<std::int64_t>::max());
  EXPECT_LT(clock_skew(ack, kNow.boot, kNow), seconds(-60));
}

}  // namespace
}  // namespace muster::agent
