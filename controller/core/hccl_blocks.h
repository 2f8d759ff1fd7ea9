// Ports for HCCL on every host of a placement that runs ranks on Ascend devices. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "controller/core/host_ports.h"
#include "controller/core/placing.h"

namespace muster::core {

// Why the range is too small for the job even where nothing else runs. `able`: how many nodes could
// do, by the address of their host. Empty: it is not.
std::string range_refuses(const HostPorts& ports, const Placing& placing,
                          const std::map<std::string, std::size_t>& able);

// Gives them, none with rank 0's port in it where the spec fixes that (else 0); the sentence where
// a host has none left. The same on all hosts, because a rank works out its peers' ports from its
// own base (HCCL: op_retry_connection.cc, heartbeat.cc); only nodes that share an address must have
// different ones.
std::string give_blocks(HostPorts& ports, const Limits& limits, std::vector<PlacedNode>& nodes,
                        std::uint16_t master_port);

// Those that were given on the host of rank 0.
std::vector<std::uint16_t> blocks_of_first_host(const std::vector<PlacedNode>& nodes);

}  // namespace muster::core
