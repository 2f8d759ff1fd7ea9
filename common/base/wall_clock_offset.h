// By how much tests set the wall clock of a process wrong (kWallClockOffsetVariable in time.h).
// Stateless functions, any thread.
#pragma once

#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"

namespace muster {

// Empty: zero. InvalidArgument for what is no number of milliseconds of at most 24 days.
Result<Duration> parse_wall_clock_offset(std::string_view text);
// That of the environment. main() refuses to start with an error; the clock would ignore the value.
Result<Duration> wall_clock_offset();

}  // namespace muster
