// Which NUMA node a PCI device hangs on, from /sys/bus/pci/devices/ADDRESS/numa_node: all that
// binding a rank near its device needs. Any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace muster::agent::probe {

// Nothing: no such device here (a container without it), or the kernel does not know (-1: one node,
// or a firmware that does not say).
std::optional<int> numa_node_of(const std::filesystem::path& sys, const std::string& bus_id);

}  // namespace muster::agent::probe
