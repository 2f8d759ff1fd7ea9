// observe.plog: where CANN writes its process log, "plog", of which the rank's own log has no word:
// EI0006 and the like often stand there alone. Each rank of each attempt gets a directory of its
// own on the node's disk, below the run directory (common/rundir/layout.h), in
// ASCEND_PROCESS_LOG_PATH. Which path that is, only the node knows: the plan says "(run
// directory)/plog/rank-3", and the agent sets the variable. Pure.
#pragma once

#include <string_view>

#include "common/engine/rows.h"

namespace muster::engine {

inline constexpr std::string_view kProcessLogPath = "ASCEND_PROCESS_LOG_PATH";
inline constexpr std::string_view kRunDirectory = "(run directory)";  // until the node has told it

// auto: the ranks of an engine that talks by HCCL, on Ascend devices. true: all ranks. Never one
// whose job sets the variable itself. After the engine's own: auxiliary processes have none.
void put_plog(Launching& launching, const Engine& engine);

// Of the rank's environment, but the agent's to set: it is not sent.
bool is_the_nodes(const RankPlan& rank, std::string_view variable);

}  // namespace muster::engine
