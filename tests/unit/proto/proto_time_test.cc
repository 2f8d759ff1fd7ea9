#include "common/proto/proto_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds, std::chrono::seconds;

google::protobuf::Timestamp stamp(std::int64_t whole, std::int32_t nanos) {
  google::protobuf::Timestamp made;
  made.set_seconds(whole);
  made.set_nanos(nanos);
  return made;
}

google::protobuf::Duration lasting(std::int64_t whole, std::int32_t nanos) {
  google::protobuf::Duration made;
  made.set_seconds(whole);
  made.set_nanos(nanos);
  return made;
}

TEST(ProtoTime, KeepsEveryNanosecond) {
  const WallTime time(seconds(1'700'000'000) + nanoseconds(123'456'789));
  EXPECT_EQ(to_proto(time).seconds(), 1'700'000'000);
  EXPECT_EQ(to_proto(time).nanos(), 123'456'789);
  EXPECT_EQ(to_wall(to_proto(time)), time);
  const Duration duration = seconds(90) + nanoseconds(1);
  EXPECT_EQ(to_proto(duration).seconds(), 90);
  EXPECT_EQ(to_proto(duration).nanos(), 1);
  EXPECT_EQ(to_duration(to_proto(duration)), duration);
}

TEST(ProtoTime, TimesBeforeTheEpochKeepPositiveNanoseconds) {
  const auto before = to_proto(WallTime(milliseconds(-1'500)));
  EXPECT_EQ(before.seconds(), -2);
  EXPECT_EQ(before.nanos(), 500'000'000);
}

TEST(ProtoTime, NegativeDurationsHaveOneSign) {
  const auto negative = to_proto(Duration(milliseconds(-1'500)));
  EXPECT_EQ(negative.seconds(), -1);
  EXPECT_EQ(negative.nanos(), -500'000'000);
  EXPECT_EQ(to_duration(negative), milliseconds(-1'500));
}

// What a network gives: every result can be subtracted from every other one.
TEST(ProtoTime, HostileTimesAreClamped) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kNanosMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(to_wall(stamp(-1, 0)), WallTime());
  EXPECT_EQ(to_wall(stamp(-kMost - 1, -kNanosMost - 1)), WallTime());
  EXPECT_EQ(to_wall(stamp(5, -1)), WallTime(seconds(5)));
  EXPECT_EQ(to_wall(stamp(kMost, kNanosMost)),
            WallTime(seconds(4'000'000'000) + nanoseconds(999'999'999)));
}

TEST(ProtoTime, HostileDurationsAreClamped) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kNanosMost = std::numeric_limits<std::int32_t>::max();
  const Duration most = to_duration(lasting(kMost, kNanosMost));
  EXPECT_EQ(most, seconds(1'000'000'000) + nanoseconds(999'999'999));
  EXPECT_EQ(to_duration(lasting(-kMost - 1, -kNanosMost - 1)), -most);
  EXPECT_GT(9 * most, Duration::zero());
}

}  // namespace
}  // namespace muster
