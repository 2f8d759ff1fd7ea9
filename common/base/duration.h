// Reads a time as people write it: "30s", "10m", "24h", "7d", "250ms", "1.5s", "1h30m", "0". Pure.
//
// Specs, flags and variables use this one reader, so that all accept the same. It refuses a bare
// number, because only the writer knows whether that means seconds or minutes.
#pragma once

#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"

namespace muster {

// The result is exact and at most 10000 days. The error begins with the text in quotes and ends
// with the accepted forms. The caller adds what the text was for.
Result<Duration> parse_duration(std::string_view text);

}  // namespace muster
