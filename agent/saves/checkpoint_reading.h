// Functions that read checkpoints before a start: whether the one to resume from is complete on
// this node, and which complete ones the controller does not know. They keep no state, block, and
// may run on any thread.
//
// Earlier attempts have written there, so links are followed only as far as the job can reach.
//
// A file that cannot be read (a stale handle, a broken disk) is a problem of this node. It says
// nothing about the checkpoint.
#pragma once

#include <string>

#include "agent/launch/job_reach.h"
#include "common/base/error.h"
#include "common/engine/model/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Returns the links to the step to resume from. Errors:
//
// - DataLoss: the checkpoint is missing or torn; if torn, `reading` says what was read.
// - NotFound: start.from names the checkpoint, and it is missing or torn.
// - Io: it cannot be read.
Result<engine::LinkPlan> plan_resume_links(const v1::ResumeLinks& resume,
                                           v1::CheckpointReading& reading,
                                           const JobReach& reach);

// Carries out NodeLaunch.scan_first and fills reading.found. Returns a sentence about what was
// found; empty: nothing was found.
std::string find_newer(const v1::NodeLaunch& order, v1::CheckpointReading& reading,
                       const UserEntry* owner = nullptr);

}  // namespace muster::agent
