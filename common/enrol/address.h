// HOST:PORT as addresses of sockets. It may run getent for a host's name (common/name_service), so
// it runs on no loop.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace muster::enrol {

// At least one address. Errors are reasons without a context: InvalidArgument (no HOST:PORT, or a
// port below `port_least`), Unreachable (the host has no address).
Result<std::vector<sockaddr_storage>> socket_addresses(const std::string& address,
                                                       std::uint16_t port_least);

}  // namespace muster::enrol
