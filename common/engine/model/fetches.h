// The directories that a node's start needs and that lie on other nodes' own disks
// (checkpoint.storage: local). Pure.
//
// A fetched directory gets the same path as on its source node. So the rest of a launch does not
// depend on the fetch: links, scripts and flags use the paths that they would use on shared
// storage.
#pragma once

#include <cstddef>
#include <vector>

#include "common/engine/model/engine.h"

namespace muster::engine {

// First the files of the checkpoint that the job resumes from: the files that the node's own ranks
// load, or all files if the job is one process (launch.per: once). Then the directories that
// resolved.fetches names.
//
// Only checkpoints with one directory for each rank are fetched (has_rank_dirs). For other
// layouts muster cannot know which rank reads which file, and it fetches nothing of the checkpoint.
std::vector<v1::Fetch> fetches(const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
