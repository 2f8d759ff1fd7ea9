// Directories that a run needs outside its run directory: ${out} and save directories, and the
// directory of links it resumes from. Blocking; any thread.
#pragma once

#include <optional>

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Made with parents, mode 0755; those that were made belong to `owner` when it is given. One that
// exists is left as it is. NotAllowed, InvalidArgument: never here; ResourceExhausted: no room; Io:
// this node's trouble.
Result<void> make_output_dirs(const v1::NodeLaunch& order, const UserEntry* owner);

// The directory of links to the one chosen checkpoint, made afresh: built beside and put in place
// by rename, so that a rank never sees half of it. Nodes that share the file system make the same
// one; the last wins and all are equal. The step is looked at again before it is linked
// (checkpoint_reading.h). DataLoss: its checkpoint is gone; or torn, and then `reading` says what
// was
// read.
Result<void> make_resume_links(const v1::ResumeLinks& resume, const UserEntry* owner,
                               v1::CheckpointReading& reading);

}  // namespace muster::agent
