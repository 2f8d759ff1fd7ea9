// How much one node may be sent for an attempt, judged when the job is submitted, by the most that
// a placement can make of its spec. An order that does not fit a message would end its node's
// stream at every connection, with every stop that waits behind it. Pure.
#pragma once

#include <cstddef>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::controller {

// One node's part of a launch as it goes over the wire: eight ranks with the longest command lines
// and variables there can be.
inline constexpr std::size_t kPartBytesMax = 12U << 20U;
// What is judged by the longest is never longer; the room over it and below rpc::kMessageBytesMax
// is for names, stops and what the future adds.
inline constexpr std::size_t kPartBytesSendable = 13U << 20U;
// Arguments and variables of one node's ranks while they are planned. What all ranks have alike is
// counted as often as there are ranks.
inline constexpr std::size_t kPlanBytesMax = 64U << 20U;

// InvalidArgument: what the engine would refuse at a start, or what is too much for one node; the
// text names the key. `spec` has its defaults filled in.
Result<void> check_launches(const v1::JobSpec& spec);

}  // namespace muster::controller
