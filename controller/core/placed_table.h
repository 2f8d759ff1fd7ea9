// A placement as common/engine sees it, and the rank table that follows from it alone. Pure.
#pragma once

#include <span>
#include <string>

#include "common/engine/engine.h"
#include "controller/core/event.h"

namespace muster::core {

engine::NodeSlot slot_of(const PlacedNode& placed);

// Content hash of the launch's rank table, to be pinned with the placement. Empty: it has none, or
// none can be made of these nodes, which then fails the launch with a sentence.
std::string table_sha256(const v1::JobSpec& spec, AttemptNo attempt,
                         std::span<const PlacedNode> nodes);

}  // namespace muster::core
