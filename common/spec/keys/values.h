// Reads the small languages of a spec's values: durations, sizes, device lists, numbers. Pure.
//
// Errors name the accepted forms.
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
// Returns the shortest text of a duration that reads back as the same.
std::string format_duration(Duration duration);

// Reads "1024", "64KiB", "1.5GiB" (KiB MiB GiB TiB, or K M G T for the same).
Result<std::uint64_t> parse_size(std::string_view text);

// Accepts decimal digits only.
Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most);

// "1.5" is 1500. At most three decimals.
Result<std::uint64_t> parse_thousandths(std::string_view text);

// "[4,8)" is 4 5 6 7.
Result<std::vector<std::uint32_t>> parse_device_range(std::string_view text);

// Returns at most 60 bytes of the text for messages, with control characters
// (common/base/controls.h) as '?'.
std::string shown(std::string_view text);

// Returns a message that can be sent and printed. Control characters except line ends, and bytes
// that are not UTF-8, become '?'. Messages quote the content of a spec, whole or cut.
std::string readable(std::string_view message);

}  // namespace muster::spec
