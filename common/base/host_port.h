// HOST:PORT, as --listen and --enrol have it, is taken apart here. Pure; it does not depend on the
// locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 0;
};

// The port is behind the last ':'. Whether there is such a host is not asked. Errors are reasons
// without a context: InvalidArgument.
Result<HostPort> parse_host_port(std::string_view text, std::uint16_t port_least = 0);

}  // namespace muster
