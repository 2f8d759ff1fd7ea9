// Applies the resource limits of the ranks. A plain function; Supervisor calls it on the worker's
// one thread.
//
// The worker sets the locked-memory limit for itself, and the ranks inherit it: one call instead of
// one for each rank. It does not do so for descriptors. With as few as its job requests, the worker
// could not read /proc, and its sweep would have to wait.
#pragma once

#include <sys/resource.h>

#include <optional>

#include "muster/rundir/v1/rundir.pb.h"
#include "worker/complaints.h"

namespace muster::worker {

struct RankLimits {
  // The limit that each rank sets, never above this process's hard limit. Empty: unchanged.
  std::optional<rlimit> nofile;
};

// In the launch record 0 means unchanged. If this process may not raise a limit that far, it raises
// the limit as far as possible and logs a line.
RankLimits apply_limits(const rundir::v1::Launch& launch, Complaints& complaints);

}  // namespace muster::worker
