// "--load ./ckpt" where an earlier job's script said "--save ./ckpt", which muster redirected:
// nothing lies there, and a training program would begin with random weights without a word.
// MUSTER_SHIM_SAVED names what such jobs have saved; it is given to this launch as a directory of
// links, made fresh. Nothing is put into the user's own tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker/shim/edits.h"

namespace muster::shim {

// As the launch would find it: absolute, without links.
std::string absolute_path(const std::string& path);

struct Earlier {
  std::string job;
  struct Checkpoint {
    std::int64_t step = 0;
    std::string path;  // of the checkpoint itself
  };
  std::vector<Checkpoint> checkpoints;  // newest first
};
// Who would have saved in `dir`, by the lines of MUSTER_SHIM_SAVED. Without a job: nobody. Pure.
Earlier saved_in(std::string_view lines, std::string_view dir);

struct LoadAnswer {
  std::string dir;     // in place of what the script says; empty: that stands
  std::string notice;  // what to say of it
};
// Errors: there is nothing to begin with, or it is not on this node. Who says --save and --load of
// one directory goes on from its own: of jobs that share a code directory, and so a ./ckpt, none
// loads another's weights. That another has saved there is told.
Result<LoadAnswer> answer_load(const ScriptOptions& given, std::string_view lines,
                               const std::string& links_dir);

}  // namespace muster::shim
