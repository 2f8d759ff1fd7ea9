// Uploads what a job has written on this node. Plain functions, on the thread of an upload; they
// block.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "agent/launch/user_entry.h"
#include "agent/outputs/send_files.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"
#include "common/store/selection.h"

namespace muster::agent {

// InvalidArgument: a pattern is none.
Result<store::Selection> wanted_of(const v1::OutputUpload& upload);

// Of the name of a directory below the first one.
using SkipDir = std::function<bool(const std::string&)>;
// The regular files below `dir` that are wanted: without links, and without what muster has made
// there (code, frozen checkpoints, lists). `unread`: a sentence about a directory that cannot be
// read; empty: there is none. NotAllowed: the user's rights are not to be had.
Result<SentFiles> list_outputs(const std::string& dir, const store::Selection& wanted,
                               const UserEntry* owner, std::string& unread,
                               const SkipDir& skip = nullptr);

struct OutputSaves {
  std::string layout;  // the row of the job's checkpoints
  std::string dir;     // absolute; below it each attempt has its save directory
  // Of the checkpoints there, these alone are uploaded: name of the save directory, and step.
  // Empty: all.
  std::set<std::pair<std::string, std::int64_t>> kept = {};
};

// Everything, when nothing writes there any more, and then the list of the sums. The marks that a
// checkpoint is whole are sent last.
Uploaded upload_outputs(const UploadWork& work, const OutputSaves& saves);

// While the job writes: what is not below its directories of checkpoints. A large file that was
// written within the last minute is left for the next time, because it may not be whole.
Uploaded upload_others(const UploadWork& work, const std::string& save_dir);

}  // namespace muster::agent
