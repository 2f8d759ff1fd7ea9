// Computes how much longer than the orphan grace a run's lease may last. Pure.
//
// The agent rewrites the lease once per step, so that the lease never promises less than the whole
// grace. Code that relies on the lease's end (the fence) waits longer by the same step. Both sides
// take the number from this header.
#pragma once

#include <algorithm>

#include "common/base/time.h"

namespace muster {

inline Duration lease_step(Duration grace) {
  return std::min(std::max<Duration>(std::chrono::seconds(1), grace / 10), grace / 4);
}

}  // namespace muster
