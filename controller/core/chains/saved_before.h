// What earlier jobs have saved, by the directory that their scripts named. Pure.
//
// A user trains with --save ./ckpt and then continues with --load ./ckpt. With launch.per: node,
// muster has redirected the first save, so ./ckpt is empty. These records let muster's torchrun
// answer the second command (worker/shim/earlier.h).
//
// A job's records are kept with the job, then with its tombstone. The placement pins what a job may
// load. That is, for each directory, the checkpoints of the newest job that has any, among the jobs
// that ended before this job was submitted. Jobs that run in parallel and share a code directory,
// and so a ./ckpt, do not see each other's checkpoints. worker/shim/earlier.h describes what
// happens to a job that saves where it loads.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/model/ledger.h"

namespace muster::core {

inline constexpr std::size_t kSavedDirsMax = 64;        // of one placement; the newest
inline constexpr std::size_t kSavedCheckpointsMax = 8;  // of one job; the newest

// Whether the path is absolute, has no control bytes, and is not longer than a path can be.
bool can_be_passed_on(std::string_view path);

// The job's complete checkpoints, newest first. Quarantined ones are left out, unless the reason is
// that they hold weights alone. A directory without checkpoints gives one entry without a path.
// Empty: neither the script nor the command line has named a directory.
std::vector<SavedBefore> saved_by(const JobRecord& job);

// By the named directory: the records of the newest job that has checkpoints, among those that had
// ended by then.
std::map<std::string, std::vector<SavedBefore>> saved_by_dir(const Ledger& ledger,
                                                             WallTime ended_by);

std::vector<SavedBefore> saved_before(const Ledger& ledger, const JobRecord& job);

}  // namespace muster::core
