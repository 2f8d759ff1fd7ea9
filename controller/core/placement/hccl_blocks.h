// Gives ports for HCCL on every host of a placement that runs ranks on Ascend devices. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "controller/core/placement/host_ports.h"
#include "controller/core/placement/placing.h"

namespace muster::core {

// Why the port range is too small for the job, even if nothing else runs. `able` counts the nodes
// that fit, by the address of their host. Empty: the range is large enough.
std::string range_refuses(const HostPorts& ports, const Placing& placing,
                          const std::map<std::string, std::size_t>& able);

// Gives every node its block of ports. No block contains `master_port`, rank 0's port if the spec
// fixes it (else 0). Returns a sentence if a host has no block left.
//
// All hosts get the same block, because a rank computes its peers' ports from its own base (HCCL:
// op_retry_connection.cc, heartbeat.cc). Only nodes that share an address must have different
// blocks.
std::string give_blocks(HostPorts& ports, const Limits& limits, std::vector<PlacedNode>& nodes,
                        std::uint16_t master_port);

// The blocks that were given on rank 0's host.
std::vector<std::uint16_t> blocks_of_first_host(const std::vector<PlacedNode>& nodes);

}  // namespace muster::core
