#include "common/enrol/address.h"

#include <charconv>

#include "common/name_service/hosts.h"

namespace muster::enrol {

Result<std::vector<sockaddr_storage>> socket_addresses(const std::string& address,
                                                       std::uint16_t port_least) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return fail(ErrorCode::InvalidArgument, "it is not HOST:PORT");
  std::uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end || port < port_least)
    return fail(ErrorCode::InvalidArgument, "what follows the last ':' is not a port (" +
                                                std::to_string(port_least) + "..65535)");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto found = name_service::addresses_of(host);
  if (!found) return fail(ErrorCode::Unreachable, found.error().message);
  std::vector<sockaddr_storage> addresses;
  for (const std::string& text : *found) {
    if (const auto made = name_service::socket_address(text, port)) addresses.push_back(*made);
  }
  if (addresses.empty()) return fail(ErrorCode::Unreachable, "its host has no address");
  return addresses;
}

}  // namespace muster::enrol
