// Finds the NUMA node of a PCI device, from /sys/bus/pci/devices/ADDRESS/numa_node. A plain
// function for any thread.
//
// This is all that muster needs to bind a rank near its device.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace muster::agent::probe {

// Returns nullopt if there is no such device here (a container without it). Also returns nullopt if
// the kernel does not know the node (-1: one node, or firmware that does not report it).
std::optional<int> numa_node_of(const std::filesystem::path& sys, const std::string& bus_id);

}  // namespace muster::agent::probe
