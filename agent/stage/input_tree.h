// A job's own tree of an input: directories, and hard links to objects of the cache. Plain
// functions, on the thread of a start; they block.
//
// It is made under another name and put in place whole, so that a job never sees a part of it.
// Agents of one machine may share it: while another run of the job uses it, it is replaced only if
// it is not what the store has by now. It stays as long as the run directory of an attempt of the
// job does: each such run has a file of its own name in ROOT/jobs/JOB/.runs, and its directory has
// a file `inputs` with the path ROOT/jobs/JOB.
#pragma once

#include <filesystem>
#include <string>

#include "agent/launch/abandoned.h"
#include "agent/launch/launch_record.h"
#include "agent/stage/input_cache.h"
#include "common/base/error.h"
#include "common/store/contents.h"

namespace muster::agent {

struct TreePlace {
  std::filesystem::path jobs;  // ROOT/jobs
  std::string job, input;      // ROOT/jobs/JOB/INPUT/NAME is the input
  std::string name;
};

// "n07.01j8x4a0b7c2d.2": the name of a run among those of all agents of the machine.
std::string trees_run_name(const NodeName& node, const RunKey& run);

// The run uses the trees of its job from now on: `run_file` is written, its file `inputs`. When
// `abandoned` is set, any result will do.
Result<void> use_trees(const std::filesystem::path& jobs, const std::string& job,
                       const std::string& run, const std::filesystem::path& run_file,
                       const Abandoned& abandoned);

// Makes the tree, or replaces it, and keeps what it has (kept_contents.h). Only `owner` may go into
// it (nullptr: the agent's own user). NotFound: an object has left the cache meanwhile. When
// `abandoned` is set before its turn comes, nothing is made, and any result will do.
Result<void> make_tree(const TreePlace& place, const store::Contents& contents,
                       const UserEntry* owner, InputCache& cache, const Abandoned& abandoned);

// The run is forgotten. If no other uses them, the trees of its job are removed; the objects stay
// in the cache. Nothing happens without a `run_file`.
Result<void> leave_trees(const std::filesystem::path& run_file, const std::string& run);

}  // namespace muster::agent
