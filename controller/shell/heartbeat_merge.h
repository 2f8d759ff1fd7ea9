// Merges two heartbeats of one connection, if the second arrives before the first was handled.
// Pure.
#pragma once

#include <cstddef>

#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

inline constexpr int kSamplesKept = 1'000;  // of a reading: as many as an agent sends at once
// The newest steps of a reading whose shards are kept: as many as the core watches.
inline constexpr std::size_t kStepsKept = 4;
// Of both together: twice the size of two heartbeats of an agent of this release.
inline constexpr std::size_t kBytesMost = 32 << 20;

// `newest` counts. Data that only `earlier` has, and that no later heartbeat repeats, is kept
// within the bounds above: samples, shards, attempts, a probe of the devices. If both together have
// more bytes, nothing of `earlier` is kept.
void take_over(v1::Heartbeat& newest, v1::Heartbeat earlier);

}  // namespace muster::controller
