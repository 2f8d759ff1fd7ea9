// Ports for HCCL on every host of a placement that runs ranks on Ascend devices. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/core/host_ports.h"
#include "controller/core/placing.h"

namespace muster::core {

// Gives them; the sentence where a host has none left. The same on all hosts, because a rank works out its peers' ports from its own base (HCCL:
// op_retry_connection.cc, heartbeat.cc); only nodes that share an address must have different ones.
std::string give_blocks(HostPorts& ports, const Limits& limits, std::vector<PlacedNode>& nodes, std::uint16_t master_port);

}  // namespace muster::core
