#include "common/enrol/address.h"

#include "common/base/host_port.h"
#include "common/name_service/hosts.h"

namespace muster::enrol {

Result<std::vector<sockaddr_storage>> socket_addresses(const std::string& address,
                                                       std::uint16_t port_least) {
  const auto parsed = parse_host_port(address, port_least);
  if (!parsed) return fail(Error(parsed.error()));
  const auto found = name_service::addresses_of(parsed->host);
  if (!found) return fail(ErrorCode::Unreachable, found.error().message);
  std::vector<sockaddr_storage> addresses;
  for (const std::string& text : *found) {
    if (const auto made = name_service::socket_address(text, parsed->port))
      addresses.push_back(*made);
  }
  if (addresses.empty()) return fail(ErrorCode::Unreachable, "its host has no address");
  return addresses;
}

}  // namespace muster::enrol
