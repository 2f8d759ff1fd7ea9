// The copies of configurations and scripts that an order has changed (NodeLaunch.patched): read
// from where they are, changed, handed back to be written as any other file of the order. One
// without a path is only looked for; its first item says which key of the spec names it, further
// ones what it must not say (config_checks.h). Blocking; any thread; with the rights that the
// caller has taken.
#pragma once

#include <optional>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// `file` is one of the order's. Nothing: nothing is to be written. A setup of the order's may bring
// a file that is only looked for, and so may the image of its container: it is missed when the
// ranks start. The answer is without a hash. Errors: NotFound (with the nearest name), NotAllowed,
// InvalidArgument (what is in it, or what is asked of it): the job's fault; Io: this node's
// trouble.
Result<std::optional<v1::LaunchFile>> patched_file(const v1::NodeLaunch& order,
                                                   const v1::PatchedFile& file);

}  // namespace muster::agent
