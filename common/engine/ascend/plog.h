// The directory of CANN's process log, "plog", for each rank (observe.plog). Pure.
//
// The plog has lines that the rank's own log does not have: EI0006 and similar codes are often only
// in the plog. Each rank of each attempt gets its own directory on the node's disk, below the run
// directory (common/rundir/layout.h), in ASCEND_PROCESS_LOG_PATH. Only the node knows the whole
// path. The plan says "(run directory)/plog/rank-3", and the agent sets the variable.
#pragma once

#include <string_view>

#include "common/engine/model/rows.h"

namespace muster::engine {

inline constexpr std::string_view kProcessLogPath = "ASCEND_PROCESS_LOG_PATH";
inline constexpr std::string_view kRunDirectory = "(run directory)";  // until the node reports it

// auto: the ranks of an engine that uses HCCL, on Ascend devices. true: all ranks. A rank whose job
// sets the variable itself is left out. It runs after the engine's own function, so auxiliary
// processes have no such directory.
void put_plog(Launching& launching, const Engine& engine);

// Whether the agent sets this variable of the rank's environment; it is not sent.
bool is_the_nodes(const RankPlan& rank, std::string_view variable);

}  // namespace muster::engine
