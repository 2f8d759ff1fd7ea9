// Answers a script's --load that names a directory in which an earlier job would have saved. Plain
// functions; run_shim() calls them on the shim's one thread.
//
// An example: an earlier script had "--save ./ckpt", which muster redirected, and this one has
// "--load ./ckpt". The directory is empty, and a training program would start with random weights
// without a message. MUSTER_SHIM_SAVED names what such jobs have saved. The launch gets it as a new
// directory of links. Nothing is put into the user's own tree.
//
// If the directory has a checkpoint or a tracker itself, the user has put it there, and --load
// stays as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker/shim/edits.h"

namespace muster::shim {

// Returns the path as the launch finds it: absolute, without links.
std::string absolute_path(const std::string& path);

struct Earlier {
  std::string job;
  struct Checkpoint {
    std::int64_t step = 0;
    std::string path;  // of the checkpoint itself
  };
  std::vector<Checkpoint> checkpoints;  // newest first
};
// Returns the job that would have saved in `dir`, by the lines of MUSTER_SHIM_SAVED. An empty job
// means that there is none. Pure.
Earlier saved_in(std::string_view lines, std::string_view dir);

struct LoadAnswer {
  std::string dir;     // replaces the script's directory; empty: no change
  std::string notice;  // the notice to print
};
// Errors: there is no checkpoint to start with, or it is not on this node.
//
// The directory is read first, on each node. If it has a tracker or a checkpoint of Megatron's
// layout, the answer changes nothing, and the notice reports that these files are loaded. If it is
// no directory or cannot be read, the answer changes nothing either, and the notice reports that.
// If it does not exist, or has nothing of that layout, the earlier job counts.
//
// A script that uses one directory for --save and --load resumes from its own checkpoints. Jobs
// that share a code directory share a ./ckpt, and none of them loads another's weights. The notice
// then reports that another job has saved there.
Result<LoadAnswer> answer_load(const ScriptOptions& given, std::string_view lines,
                               const std::string& links_dir);

}  // namespace muster::shim
