// patched_file() makes the changed copy of a configuration or a script of this node
// (NodeLaunch.patched). It keeps no state. It blocks, and may run on any thread, with the rights
// that the caller has taken.
//
// It reads the file, changes it, and returns it; the caller writes it like any other file of the
// order. A PatchedFile without a path is only checked for existence. Its first item names the key
// of the spec; the others say what the file must not contain (config_checks.h).
#pragma once

#include <optional>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// `file` is one of the order's. An empty result means that nothing is to be written. A result has
// no hash.
//
// The order's setup or the image of its container may provide a file that is only checked for
// existence. Then it is first missed when the ranks start.
//
// Errors:
//
// - NotFound (with the nearest name), NotAllowed, InvalidArgument (wrong content, or a wrong
//   change): the job's fault.
// - Io: a problem of this node.
Result<std::optional<v1::LaunchFile>> patched_file(const v1::NodeLaunch& order,
                                                   const v1::PatchedFile& file);

}  // namespace muster::agent
