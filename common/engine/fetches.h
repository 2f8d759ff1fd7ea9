// checkpoint.storage: local: what a node's start needs and other nodes' own disks have. Pure.
//
// What is brought lies at the same path as where it came from, so that nothing else of a launch
// knows of it: links, scripts and flags name what they would name on a storage that every node
// sees.
#pragma once

#include <cstddef>
#include <vector>

#include "common/engine/engine.h"

namespace muster::engine {

// Of the checkpoint that it goes on from, what the node's own ranks load, or all of it where the
// job is one process (launch.per: once); then what spec.fetches names. Only for checkpoints with a
// directory a rank (layout "mindformers"): of the others it cannot be told who reads what, and
// nothing is brought.
std::vector<v1::Fetch> fetches(const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
