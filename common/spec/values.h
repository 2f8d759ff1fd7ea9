// The small languages of a spec's values: durations, sizes, device lists, numbers. Pure. Errors say
// what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/duration.h"
#include "common/base/error.h"
#include "common/base/time.h"

namespace muster::spec {

using muster::parse_duration;
// The shortest way to write a duration that reads back as the same.
std::string format_duration(Duration duration);

// "1024", "64KiB", "1.5GiB" (KiB MiB GiB TiB, or K M G T for the same).
Result<std::uint64_t> parse_size(std::string_view text);

// Decimal digits only.
Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most);

// "1.5": 1500. At most three decimals.
Result<std::uint64_t> parse_thousandths(std::string_view text);

// "[4,8)": 4 5 6 7.
Result<std::vector<std::uint32_t>> parse_device_range(std::string_view text);

// For messages: at most 60 bytes of it, control characters (common/base/controls.h) as '?'.
std::string shown(std::string_view text);

// A message as it may be sent and printed: control characters but line ends, and what is not UTF-8,
// as '?'. Messages quote what a spec holds, whole or cut.
std::string readable(std::string_view message);

}  // namespace muster::spec
