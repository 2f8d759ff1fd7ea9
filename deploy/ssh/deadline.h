// A moment until which a step may take, on the steady clock of this process. Plain values; it reads
// the clock. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "common/base/time.h"

namespace muster::ssh {

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr Duration kTimeMost = std::chrono::hours(24 * 30);

inline Deadline deadline_after(Duration time) {
  return std::chrono::steady_clock::now() + std::clamp(time, Duration::zero(), kTimeMost);
}
inline bool passed(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

// For poll(2): rounded up, 0 when it has passed, at most a minute at a time.
inline int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

}  // namespace muster::ssh
