// The two clocks of muster as types, and the interface that reads them. Daemons use system_clock(),
// which lives as long as the process. system_clock() may be read on any thread.
//
// WallTime is for records and for people. BootTime (CLOCK_BOOTTIME: it runs on during suspend and
// starts anew with each boot) is for waits and deadlines, and never leaves its machine. Core code
// receives a Now as an argument; only the edges read clocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

// The seam for tests: daemons use system_clock(), tests and the simulator use their own clocks.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now now() const = 0;
};

// For tests of several programs: milliseconds (at most 24 days) by which the wall clock of this
// process is wrong. It is read once. An agent passes it to its workers. Never set it on a node that
// people use.
inline constexpr const char* kWallClockOffsetVariable = "MUSTER_WALL_CLOCK_OFFSET_MS";

// Reads CLOCK_REALTIME and CLOCK_BOOTTIME. It is never destroyed.
const Clock& system_clock();

// The whole second in UTC, for people: "2026-11-26T10:00:00Z".
std::string utc_text(WallTime time);

}  // namespace muster
