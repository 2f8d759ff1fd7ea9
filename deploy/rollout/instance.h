// The instance of an agent, as its state directory on the host names it. Blocking.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "deploy/rollout/host.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

// Reads the file `identity` (docs/run-directory.md). Empty: the agent has not made it yet.
// DataLoss: it makes no sense.
Result<std::string> read_instance(Host& host, const Places& places);

// Why the agent of this name that the controller sees, with instance `seen`, is not known to be the
// host's own. Nothing: it is the host's own. Empty: the host's own has not made its instance yet.
std::optional<std::string> why_not_own(Host& host, const Places& places, const std::string& seen);

}  // namespace muster::rollout
