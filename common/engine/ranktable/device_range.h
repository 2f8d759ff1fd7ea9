// Which devices of a server take part, in the notation of hccl_tools.py. Pure. Errors say what is
// accepted.
//
// The notation has two parts: a half-open range of logic numbers, and a list with the physical
// device of each logic number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/engine/ranktable/check_table.h"

namespace muster::ranktable {

inline constexpr std::uint32_t kDevicesPerServerMax = 16;  // the most that a chip has

struct DeviceRange {
  std::uint32_t first = 0, end = 0;  // end is excluded
};

// Parses "[0,8)". "[0,8]" means the same eight devices, as for the vendor's tool. The range has at
// least one device, and `end` is at most `per_server`.
//
// Without a chip the tool's own rule of groups applies: no range across 4 except [0,8) and [0,16).
// For a 910 the rule of HCCL's reader applies. The other chips have no groups.
Result<DeviceRange> parse_device_range(std::string_view text, std::uint32_t per_server,
                                       std::optional<Chip> chip);

// Parses "4,5,6,7" or "4-7": the physical number of each logic number.
Result<std::vector<std::uint32_t>> parse_visible_devices(std::string_view text);

struct LocalDevice {
  std::uint32_t logic = 0, physical = 0;
};
// Error: the list is shorter than the range's end.
Result<std::vector<LocalDevice>> pick_devices(const DeviceRange& range,
                                              const std::vector<std::uint32_t>& visible);

}  // namespace muster::ranktable
