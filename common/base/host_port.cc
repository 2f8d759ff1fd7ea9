#include "common/base/host_port.h"

#include <charconv>

namespace muster {

Result<HostPort> parse_host_port(std::string_view text, std::uint16_t port_least) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return fail(ErrorCode::InvalidArgument, "it is not HOST:PORT");
  HostPort parsed;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, parsed.port);
  if (error != std::errc() || rest != end || parsed.port < port_least)
    return fail(ErrorCode::InvalidArgument, "what follows the last ':' is not a port (" +
                                                std::to_string(port_least) + "..65535)");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  parsed.host = host;
  return parsed;
}

}  // namespace muster
