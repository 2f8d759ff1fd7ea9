// Why queued jobs wait, a sentence each, for a list of them. explain() searches places for one job
// and for those ahead of it; a list of a thousand would hold the strand for seconds. Here such
// searches are few, however many jobs there are: for the job that the others stand behind, and for
// the first ones that no node could hold; the rest is told its place in the queue. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

// Of `jobs`, all queued.
std::map<JobId, std::string> queue_why(const Ledger& ledger, const Presence& presence,
                                       const std::vector<JobId>& jobs, Now now,
                                       const Limits& limits);

}  // namespace muster::core
