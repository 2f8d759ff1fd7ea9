// Functions that make the directories which a run needs outside its run directory: ${out}, save
// directories, and the directory of links to resume from. They keep no state. They block, and may
// run on any thread.
#pragma once

#include <optional>

#include "agent/launch/job_reach.h"
#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Makes them with parents, mode 0755; new ones belong to `owner` if it is given. An existing one
// stays as it is. With `owner`, they are made with the owner's rights, and where these do not
// suffice as site_dirs.h says. Errors:
//
// - NotAllowed, InvalidArgument: impossible on this node.
// - ResourceExhausted: no space.
// - Io: a problem of this node.
Result<void> make_output_dirs(const v1::NodeLaunch& order, const UserEntry* owner);

// Makes the directory of links to the one chosen checkpoint anew. It is built in the same parent
// directory and then renamed, so that a rank never sees an incomplete one. Nodes that share the
// file system make the same one; the last wins and all are equal.
//
// With `owner` it is made with the owner's rights: he may write where he saves.
//
// The step is checked again before it is linked (checkpoint_reading.h). DataLoss: its checkpoint is
// missing or torn; if torn, `reading` says what was read. It is read as far as `reach` allows.
Result<void> make_resume_links(const v1::ResumeLinks& resume, const UserEntry* owner,
                               v1::CheckpointReading& reading, const JobReach& reach);

}  // namespace muster::agent
