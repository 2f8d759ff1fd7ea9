// Pauses before something is tried again: how long they are, and when they end. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace muster::core {

// `first` after the first failure in a row, and twice as long after each further one, up to `most`.
inline Duration doubled_pause(Duration first, std::uint32_t failures, Duration most) {
  Duration pause = first;
  for (std::uint32_t more = 1; more < failures && pause < most; ++more) pause *= 2;
  return std::min(pause, most);
}

// When a pause ends that has lasted since `since`. Nothing: it is over. A clock that was set back
// does not make the pause longer.
inline std::optional<BootTime> pause_end(WallTime since, Duration pause, Now now) {
  const Duration lasted = now.wall - since;
  if (lasted < Duration::zero() || lasted >= pause) return std::nullopt;
  return now.boot + (pause - lasted);
}

}  // namespace muster::core
