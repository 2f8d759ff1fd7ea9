// Why queued jobs wait: one sentence each, for a list of jobs. Pure.
//
// explain() searches nodes for one job and for those ahead of it. For a list of a thousand jobs
// that would block the strand for seconds. Here the number of searches is small and fixed: for the
// job that blocks the others, and for the first jobs that no nodes could hold. All other jobs get
// their position in the queue.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

// All of `jobs` must be queued.
std::map<JobId, std::string> queue_why(const Ledger& ledger, const Presence& presence,
                                       const std::vector<JobId>& jobs, Now now,
                                       const Limits& limits);

}  // namespace muster::core
