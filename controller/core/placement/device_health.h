// What the agents' probes of devices mean for new work. Pure.
//
// Processes that already run on a device are left alone: only their own end shows that they cannot
// continue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/model/ledger.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// The agent probes its devices (Inventory.probes_devices), but has not sent their state on this
// connection yet. It sends it with its first heartbeat.
[[nodiscard]] bool awaits_probe(const NodeRecord& node, const NodeSeen& seen);

// Why the device gets no new work: it is bad, or processes that are not muster's use it. Nothing:
// it may get work. This is also the result if nobody probes it.
[[nodiscard]] std::optional<std::string> unusable(const NodeSeen& seen, std::uint32_t device);

}  // namespace muster::core
