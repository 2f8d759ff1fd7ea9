// The network interfaces that are up, with their addresses, as the kernel lists them. Any thread;
// does not block.
#pragma once

#include <ifaddrs.h>

#include <vector>

#include "agent/probe/routes.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

// By name; IPv4 before IPv6, without link-local addresses (nobody reaches one by itself). Loopback
// only where there is nothing else.
std::vector<v1::NetworkInterface> network_interfaces();

// The same, of a list that getifaddrs() gave.
std::vector<v1::NetworkInterface> interfaces_of(const ifaddrs* list);

// Those that routes may go through, with or without addresses.
NetworkLinks network_links();
NetworkLinks links_of(const ifaddrs* list);

}  // namespace muster::agent
