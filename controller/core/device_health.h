// What the agents' looks at their devices mean for new work. What runs on a device already is left
// alone: only its own end says that it cannot go on. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/ledger.h"
#include "controller/core/presence.h"

namespace muster::core {

// The agent looks at its devices (Inventory.features) and has not said yet, on this connection, how
// they are. It does so with its first heartbeat.
[[nodiscard]] bool awaits_probe(const NodeRecord& node, const NodeSeen& seen);

// Why the device gets no new work: it is bad, or processes that are not muster's are on it.
// Nothing: it may have some; also where nobody looks at it.
[[nodiscard]] std::optional<std::string> unusable(const NodeSeen& seen, std::uint32_t device);

}  // namespace muster::core
