// Devices written down by hand, for nodes whose tools are missing, slow or not to be asked. One
// device a line, words in any order, '#' to the line's end is for people; `id` and `type` must be
// there:
//   id=0 type=ascend910b name=910B3 physical=4 bus=0000:c1:00.0 memory_mib=65536 address=192.1.1.4
//   numa=1
// More words: super_device=, super_pod=, server= (A3). Pure.
#pragma once

#include <string_view>
#include <vector>

#include "agent/probe/device.h"
#include "common/base/error.h"

namespace muster::agent::probe {

inline constexpr std::size_t kFixedInventoryBytesMax = 256 << 10;

// By id. InvalidArgument: every problem with its line.
Result<std::vector<Device>> parse_fixed_inventory(std::string_view text);

}  // namespace muster::agent::probe
