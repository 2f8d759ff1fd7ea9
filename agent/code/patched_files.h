// patched_file() makes the changed copy of a configuration or a script of this node
// (NodeLaunch.patched). It keeps no state. It blocks, and may run on any thread, with the rights
// that the caller has taken.
//
// It reads the file, changes it, and returns it; the caller writes it like any other file of the
// order.
#pragma once

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// `file` is one of the order's. The result has no hash.
//
// Errors:
//
// - NotFound (with the nearest name), NotAllowed, InvalidArgument (wrong content, or a wrong
//   change): the job's fault.
// - Io: a problem of this node.
Result<v1::LaunchFile> patched_file(const v1::NodeLaunch& order, const v1::PatchedFile& file);

}  // namespace muster::agent
