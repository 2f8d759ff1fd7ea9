// Resource limits of the ranks, set in the worker and inherited: once instead of once a rank.
#pragma once

#include "muster/rundir/v1/rundir.pb.h"
#include "worker/complaints.h"

namespace muster::worker {

// 0 in the launch record = leave. A limit that only root may raise is raised as far as it goes, with a line that says so.
void apply_limits(const rundir::v1::Launch& launch, Complaints& complaints);

}  // namespace muster::worker
