// The instance of an agent, as its state directory on the host names it. Blocking.
#pragma once

#include <string>

#include "common/base/error.h"
#include "deploy/rollout/host.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

// Reads the file `identity` (docs/run-directory.md). Empty: the agent has not made it yet.
// DataLoss: it makes no sense.
Result<std::string> read_instance(Host& host, const Places& places);

}  // namespace muster::rollout
