// make_plog_dirs() makes the directories of the ranks' process logs (common/engine/ascend/plog.h).
// It keeps no state. It runs on the thread of a start.
//
// The directories are in the run directory: on the node's own disk, and removed with it.
#pragma once

#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Makes one with mode 0700 for each rank for which the order wants it. An existing one stays.
// Errors: those of the disk.
Result<void> make_plog_dirs(const v1::NodeLaunch& order, const rundir::RunLayout& layout);

}  // namespace muster::agent
