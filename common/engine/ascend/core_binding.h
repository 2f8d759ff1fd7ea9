// Whether a node's ranks are bound to the CPU cores nearest to their devices. Pure.
//
// The node itself finds out which cores these are (agent/launch/core_shares.h).
#pragma once

#include <cstddef>

#include "common/engine/model/engine.h"

namespace muster::engine {

// True if all of these hold:
// - one rank runs on each device (launch.per: rank);
// - muster knows the engine (any but command);
// - the devices are Ascend or NVIDIA devices;
// - nothing else binds the ranks: CPU_AFFINITY_CONF (torch_npu), GOMP_CPU_AFFINITY and KMP_AFFINITY
//   (OpenMP) are not set.
//
// A node's script starts its ranks itself, and a program of engine command may need all cores.
bool binds_cores(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node);

}  // namespace muster::engine
