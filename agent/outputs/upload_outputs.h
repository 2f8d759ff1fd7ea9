// Uploads what a job has written on this node. Plain functions, on the thread of an upload; they
// block.
#pragma once

#include <string>

#include "agent/launch/user_entry.h"
#include "agent/outputs/send_files.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"
#include "common/store/selection.h"

namespace muster::agent {

// InvalidArgument: a pattern is none.
Result<store::Selection> wanted_of(const v1::OutputUpload& upload);

// The regular files below `dir` that are wanted: without links, and without what muster has made
// there (code, frozen checkpoints). NotAllowed, Io: it cannot be read.
Result<SentFiles> list_outputs(const std::string& dir, const store::Selection& wanted,
                               const UserEntry* owner);

// Everything, when nothing writes there any more. `layout`: the row of the job's checkpoints. The
// marks that a checkpoint is whole are sent last.
Uploaded upload_outputs(const UploadWork& work, const std::string& layout);

// While the job writes: what is not below its directories of checkpoints. A large file that was
// written within the last minute is left for the next time, because it may not be whole.
Uploaded upload_others(const UploadWork& work, const std::string& save_dir);

}  // namespace muster::agent
