// Two clocks, as types. WallTime is for records and people; BootTime (CLOCK_BOOTTIME: goes on
// during suspend, starts anew with
// each boot) is for waits and deadlines, and never leaves its machine. Cores are handed a Now; only
// edges read clocks.
#pragma once

#include <chrono>
#include <cstdint>

namespace muster {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

struct BootClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};
using BootTime = BootClock::time_point;
using Duration = std::chrono::nanoseconds;

struct Now {
  WallTime wall{};
  BootTime boot{};
};

// The seam: daemons use system_clock(), tests and the simulator their own.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now now() const = 0;
};

// CLOCK_REALTIME and CLOCK_BOOTTIME. Lives for ever.
const Clock& system_clock();

}  // namespace muster
