// What a node reads of checkpoints before a start: whether the one to resume from is whole here,
// and whole ones that the controller does not know of. What could not be read (a stale handle, a
// broken disk) is this node's trouble and says nothing of a checkpoint. Blocking; any thread.
#pragma once

#include <string>

#include "common/base/error.h"
#include "common/engine/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// The links to the step to resume from. DataLoss: it is not there; or it is torn, and then
// `reading`
// says what was read. NotFound: it is what start.from names, and not there, or torn. Io: it cannot
// be read.
Result<engine::LinkPlan> plan_resume_links(const v1::ResumeLinks& resume,
                                           v1::CheckpointReading& reading);

// NodeLaunch.scan_first: fills reading.found. Empty text: there are none.
std::string find_newer(const v1::NodeLaunch& order, v1::CheckpointReading& reading);

}  // namespace muster::agent
