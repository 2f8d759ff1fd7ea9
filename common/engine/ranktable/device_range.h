// Which devices of a server take part, in the words of hccl_tools.py: a half-open range of logic
// numbers, and the list that says which physical device each of them is. Pure. Errors say what is
// accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/engine/ranktable/check_table.h"

namespace muster::ranktable {

inline constexpr std::uint32_t kDevicesPerServerMax = 16;  // as many as a chip of check_table.h has

struct DeviceRange {
  std::uint32_t first = 0, end = 0;  // end is not in it
};

// "[0,8)"; "[0,8]" is the same eight devices, as it is for the vendor's tool. At least one; `end`
// at most `per_server`. Without a chip the tool's own rule of groups holds (no range across 4 but
// [0,8) and [0,16)); a 910 wants what its reader wants; the others have no groups.
Result<DeviceRange> parse_device_range(std::string_view text, std::uint32_t per_server,
                                       std::optional<Chip> chip);

// "4,5,6,7" or "4-7": physical numbers by logic number.
Result<std::vector<std::uint32_t>> parse_visible_devices(std::string_view text);

struct LocalDevice {
  std::uint32_t logic = 0, physical = 0;
};
// Error: the list ends before the range does.
Result<std::vector<LocalDevice>> pick_devices(const DeviceRange& range,
                                              const std::vector<std::uint32_t>& visible);

}  // namespace muster::ranktable
