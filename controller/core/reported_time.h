// Times that a node or a client tells, as times of ours. Pure.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>

#include "common/base/time.h"

namespace muster::core {

// From 1970 to 2096: no clock says more, and two of them can be subtracted.
inline WallTime to_wall(const google::protobuf::Timestamp& from) {
  constexpr std::int64_t kSecondsMost = 4'000'000'000;
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(from.seconds(), 0, kSecondsMost)) +
                  std::chrono::nanoseconds(std::clamp(from.nanos(), 0, 999'999'999)));
}

}  // namespace muster::core
