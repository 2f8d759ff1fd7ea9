// Whether a node's ranks are bound to the cores nearest to their devices. Which cores those are,
// the node finds out (agent/host/core_shares.h). Pure.
#pragma once

#include <cstddef>

#include "common/engine/engine.h"

namespace muster::engine {

// A rank a device, of an engine that muster knows, on Ascend or NVIDIA devices; and nobody else
// binds: CPU_AFFINITY_CONF (torch_npu), GOMP_CPU_AFFINITY and KMP_AFFINITY (OpenMP) are not set. A
// script a node starts its ranks itself, and what engine command starts may be meant for all cores.
bool binds_cores(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node);

}  // namespace muster::engine
