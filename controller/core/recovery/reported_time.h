// Converts times that a node or a client sends into the controller's time type. Pure.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace muster::core {

// Clamps to 1970..2096: no clock is beyond that, and two such times can be subtracted.
inline WallTime to_wall(const google::protobuf::Timestamp& from) {
  constexpr std::int64_t kSecondsMost = 4'000'000'000;
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(from.seconds(), 0, kSecondsMost)) +
                  std::chrono::nanoseconds(std::clamp(from.nanos(), 0, 999'999'999)));
}

}  // namespace muster::core
