// How much longer than the orphan grace a run's lease may last. The agent rewrites the lease once a
// step, so that it never promises less than the whole grace; whoever counts on its end (the fence)
// waits for as much more. Both sides have the number from here.
#pragma once

#include <algorithm>

#include "common/base/time.h"

namespace muster {

inline Duration lease_step(Duration grace) {
  return std::min(std::max<Duration>(std::chrono::seconds(1), grace / 10), grace / 4);
}

}  // namespace muster
