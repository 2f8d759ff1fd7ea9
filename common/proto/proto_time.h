// Converts between muster's time types and Timestamp and Duration of protobuf. Pure.
//
// Every WallTime and every Duration has an exact message. A message may come from a network: its
// value is clamped, so that the result can be added and subtracted without an overflow.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace muster {

// Also before 1970 the nanoseconds count forward, as Timestamp defines it.
inline google::protobuf::Timestamp to_proto(WallTime time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(time.time_since_epoch().count());
}

// Seconds and nanoseconds have the same sign, as Duration defines it.
inline google::protobuf::Duration to_proto(Duration duration) {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(duration.count());
}

// Clamps to 1970..2096: no clock is beyond that, and two such times can be subtracted.
inline WallTime to_wall(const google::protobuf::Timestamp& from) {
  constexpr std::int64_t kSecondsMost = 4'000'000'000;
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(from.seconds(), 0, kSecondsMost)) +
                  std::chrono::nanoseconds(std::clamp(from.nanos(), 0, 999'999'999)));
}

// Clamps to 31 years in both directions: no job lasts longer, and nine such durations can be added.
inline Duration to_duration(const google::protobuf::Duration& from) {
  constexpr std::int64_t kSecondsMost = 1'000'000'000;
  return std::chrono::seconds(std::clamp(from.seconds(), -kSecondsMost, kSecondsMost)) +
         std::chrono::nanoseconds(std::clamp(from.nanos(), -999'999'999, 999'999'999));
}

}  // namespace muster
