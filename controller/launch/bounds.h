// Limits how much one node may be sent for an attempt. The limit is judged when the job is
// submitted, by the largest result that a placement can make of its spec. Pure.
//
// An order that does not fit into a message would end its node's stream at every connection, and
// with it every stop that waits behind it.
#pragma once

#include <cstddef>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::controller {

// One node's part of a launch as it is sent: enough for eight ranks with the longest possible
// command lines and variables.
inline constexpr std::size_t kPartBytesMax = 12U << 20U;
// A real part is never longer than the longest one that was judged. The room above that, and below
// rpc::kMessageBytesMax, is for names, stops and future additions.
inline constexpr std::size_t kPartBytesSendable = 13U << 20U;
// Arguments and variables of one node's ranks while they are planned. What all ranks share is
// counted once for each rank.
inline constexpr std::size_t kPlanBytesMax = 64U << 20U;

// InvalidArgument: the engine would refuse the spec at a start, or it is too much for one node. The
// text names the key. `spec` must have its defaults filled in.
Result<void> check_launches(const v1::JobSpec& spec);

}  // namespace muster::controller
