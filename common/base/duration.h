// How people write a time: "30s", "10m", "24h", "7d", "250ms", "1.5s", "1h30m", "0". One reader for
// specs, flags and variables, so that all accept the same. A bare number is refused: whether it
// means seconds or minutes only its writer knows. Pure.
#pragma once

#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"

namespace muster {

// Exact, at most 10000 days. The error begins with the text in quotes and ends with what is
// accepted: what it was for is the caller's to say.
Result<Duration> parse_duration(std::string_view text);

}  // namespace muster
