// A rank table as a cloud's jobstart_hccl.json has it: the group list (group_list.h) in the form
// without rank ids. Its reader, the cloud's launcher, numbers ranks by pod and then by the devices
// as they stand; so servers and devices are written in the order of their ranks. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

inline constexpr std::uint32_t kGroupDeviceMost = 7;  // a device's number in this form

// One group, completed; the i-th server by rank is pod "<pods>-<i>". Of a table that check() found
// sound. Errors: what the form has no place for (super-pods, a device beyond 7), ranks of one
// server that do not follow each other.
Result<std::string> group_list_text(const RankTable& table, std::string_view pods);

}  // namespace muster::ranktable
