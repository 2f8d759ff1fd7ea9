// The directories of the ranks' process logs (engine/plog.h), in the run directory: on the node's
// own disk, and gone with it.
#pragma once

#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Mode 0700, for each rank of which the order wants one. One that is there stays. Errors: the
// disk's.
Result<void> make_plog_dirs(const v1::NodeLaunch& order, const rundir::RunLayout& layout);

}  // namespace muster::agent
