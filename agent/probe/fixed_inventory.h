// Parses a list of devices that an operator wrote, for nodes whose tools are missing, slow or must
// not be called. Pure.
//
// Each line is one device, its fields may have any order, and '#' begins a comment. `id` and `type`
// are required:
//   id=0 type=ascend910b name=910B3 physical=4 bus=0000:c1:00.0 memory_mib=65536 address=192.1.1.4
//   numa=1
// More fields: super_device=, super_pod=, server= (A3).
#pragma once

#include <string_view>
#include <vector>

#include "agent/probe/device.h"
#include "common/base/error.h"

namespace muster::agent::probe {

inline constexpr std::size_t kFixedInventoryBytesMax = 256 << 10;

// Sorted by id. Errors: InvalidArgument, with every problem and its line.
Result<std::vector<Device>> parse_fixed_inventory(std::string_view text);

}  // namespace muster::agent::probe
