// Two heartbeats of one connection as one, when the earlier was not looked at before the later
// came.
#pragma once

#include <cstddef>

#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

inline constexpr int kSamplesKept = 1'000;  // a reading: as many as an agent sends at once
// newest steps of a reading whose shards are kept: as many as the core watches
inline constexpr std::size_t kStepsKept = 4;
// of both together: twice what two of an agent of this release come to
inline constexpr std::size_t kBytesMost = 32 << 20;

// `newest` is what counts; what `earlier` alone says and no later heartbeat repeats (samples,
// shards,
// attempts, a look at the devices) is kept within the bounds above; of more bytes nothing of it.
void take_over(v1::Heartbeat& newest, v1::Heartbeat earlier);

}  // namespace muster::controller
