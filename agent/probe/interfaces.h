// Lists the network interfaces that are up, with their addresses, as the kernel reports them. Plain
// functions for any thread; they do not block.
#pragma once

#include <ifaddrs.h>

#include <vector>

#include "agent/probe/routes.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

// Sorted by name. IPv4 comes before IPv6. Link-local addresses are left out, because other nodes
// cannot reach them without naming an interface. Loopback is listed only if there is nothing else.
std::vector<v1::NetworkInterface> network_interfaces();

// The same for a list from getifaddrs().
std::vector<v1::NetworkInterface> interfaces_of(const ifaddrs* list);

// The interfaces that routes may use, with or without addresses.
NetworkLinks network_links();
NetworkLinks links_of(const ifaddrs* list);

}  // namespace muster::agent
