// Looks up the addresses of a host in this host's tables (getent.h), and turns addresses into those
// of sockets and back. Stateless. addresses_of() may run a program for Tables::most, so it may run
// on any thread but a loop; it needs none for a numeric address and for 'localhost'. The other
// functions do not block.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/name_service/getent.h"

namespace muster::name_service {

// Returns at least one numeric address, in the order in which to try them. Errors are reasons
// without a context: NotFound ("it does not resolve"); Unreachable when the host gave no answer, or
// one that cannot be right.
Result<std::vector<std::string>> addresses_of(const std::string& host, const Tables& tables = {});

// A numeric address with a port. Empty result: it is none, or its %interface does not exist.
std::optional<sockaddr_storage> socket_address(const std::string& address, std::uint16_t port);
socklen_t size_of(const sockaddr_storage& address);
// The numeric address, IPv6 with its %interface if it has one. Empty: neither IPv4 nor IPv6.
std::string address_text(const sockaddr_storage& address);

}  // namespace muster::name_service
