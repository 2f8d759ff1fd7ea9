// Removes versions of the programs that no daemon runs any more. Stateless; blocking.
#pragma once

#include <span>
#include <string>

#include "deploy/rollout/host.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

// Removes PREFIX/VERSION of each version, and nothing that `muster deploy` did not put there. The
// version that `current` names stays. Repeatable.
Result<void> remove_versions(Host& host, const Places& places,
                             std::span<const std::string> versions);

}  // namespace muster::rollout
