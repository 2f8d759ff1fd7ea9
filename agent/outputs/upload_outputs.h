// Uploads what a job has written on this node. Plain functions, on the thread of an upload; they
// block.
#pragma once

#include <functional>
#include <string>

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
// there (code, frozen checkpoints). `unread`: a sentence about a directory that cannot be read;
// empty: there is none. NotAllowed: the user's rights are not to be had.
Result<SentFiles> list_outputs(const std::string& dir, const store::Selection& wanted,
                               const UserEntry* owner, std::string& unread,
                               const SkipDir& skip = nullptr);

// Everything, when nothing writes there any more, and then the list of the sums. `layout`: the row
// of the job's checkpoints. The marks that a checkpoint is whole are sent last.
Uploaded upload_outputs(const UploadWork& work, const std::string& layout);

// While the job writes: what is not below its directories of checkpoints. A large file that was
// written within the last minute is left for the next time, because it may not be whole.
Uploaded upload_others(const UploadWork& work, const std::string& save_dir);

}  // namespace muster::agent
