// Writes a rank table as a cloud's jobstart_hccl.json: the group list (group_list.h) in the form
// without rank ids. Pure.
//
// Its reader, the cloud's launcher, numbers ranks by pod and then in the order of the devices. So
// servers and devices are written in the order of their ranks.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

inline constexpr std::uint32_t kGroupDeviceMost = 7;  // greatest number of a device in this form

// One group with status "completed". The i-th server by rank is pod "<pods>-<i>". check() must have
// found the table sound.
//
// Errors: something that the form cannot express (super-pods, a device beyond 7), or ranks of one
// server that are not consecutive.
Result<std::string> group_list_text(const RankTable& table, std::string_view pods);

}  // namespace muster::ranktable
