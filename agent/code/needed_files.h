// check_needed_file() checks a file of this node that must exist before a run starts
// (NodeLaunch.needed), and that it does not contain what it must not (config_checks.h). It keeps no
// state. It blocks, and may run on any thread, with the rights that the caller has taken.
#pragma once

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// `file` is one of the order's. The order's setup or the image of its container may provide the
// file. Then it is first missed when the ranks start.
//
// If the file is also the source of a copy (NodeLaunch.patched), the caller makes the copy first.
// The file itself is checked here, not the copy: the order refuses no value that the copy sets.
//
// Errors:
//
// - NotFound (with the nearest name), NotAllowed, InvalidArgument (no absolute path, or a refused
//   value): the job's fault.
// - Io: a problem of this node.
Result<void> check_needed_file(const v1::NodeLaunch& order, const v1::NeededFile& file);

}  // namespace muster::agent
