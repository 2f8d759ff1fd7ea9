// The rank table that follows from a placement alone. Pure.
#pragma once

#include <span>
#include <string>

#include "common/engine/model/engine.h"
#include "controller/core/model/event.h"

namespace muster::core {

// The content hash of the launch's rank table, to be pinned with the placement. Empty: the launch
// has no table, or these nodes allow none. In the latter case the launch fails with a sentence.
std::string table_sha256(const v1::JobSpec& spec, AttemptNo attempt,
                         std::span<const PlacedNode> nodes);

}  // namespace muster::core
