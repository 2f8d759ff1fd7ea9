// "Train with --save ./ckpt, then continue with --load ./ckpt": with launch.per: node muster has
// redirected the first, and nothing lies in ./ckpt. What jobs have saved, by the directory that
// their scripts named, so that muster's torchrun can answer the second (worker/shim/earlier.h).
// Pure.
//
// Kept with the job, then with its tombstone. The placement pins what a job may load: of each
// directory the checkpoints of the newest job that has any, of those that had ended before this one
// was submitted. Jobs side by side that share a code directory, and so a ./ckpt, do not see each
// other's; what becomes of one that saves where it loads, the launcher says
// (worker/shim/earlier.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

inline constexpr std::size_t kSavedDirsMax = 64;        // of one placement; the newest
inline constexpr std::size_t kSavedCheckpointsMax = 8;  // of one job; the newest

// An absolute path without control bytes, of a length that paths can have.
bool can_be_passed_on(std::string_view path);

// Whole checkpoints that this job has, newest first, those quarantined left out unless for being
// weights alone. With a directory and without a checkpoint: one entry without a path. Neither its
// script nor its command line has named a directory: nothing.
std::vector<SavedBefore> saved_by(const JobRecord& job);

// By the directory that was named: of the newest job that has any, of those that had ended by then.
std::map<std::string, std::vector<SavedBefore>> saved_by_dir(const Ledger& ledger,
                                                             WallTime ended_by);

std::vector<SavedBefore> saved_before(const Ledger& ledger, const JobRecord& job);

}  // namespace muster::core
