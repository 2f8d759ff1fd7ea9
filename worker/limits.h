// Resource limits of the ranks. What the worker itself can do without (locked memory) is set in it
// and inherited: once instead of once a rank. Descriptors are not: a worker that had as few as its
// job asked for could not look into /proc, and its sweep would have to wait.
#pragma once

#include <sys/resource.h>

#include <optional>

#include "muster/rundir/v1/rundir.pb.h"
#include "worker/complaints.h"

namespace muster::worker {

struct RankLimits {
  // for each rank to set; never above this process's hard limit. Nothing: leave
  std::optional<rlimit> nofile;
};

// 0 in the launch record = leave. A limit that this process may not raise so far is raised as far
// as it goes, with a line that says so.
RankLimits apply_limits(const rundir::v1::Launch& launch, Complaints& complaints);

}  // namespace muster::worker
