// Finds the training address: it asks the kernel which local address a packet to the controller
// would have. A UDP connect sends nothing.
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "agent/probe/inventory.h"
#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"

namespace muster::agent {
namespace {

// Of "dns:///host:port", "host:port", "[v6]:port", "host".
std::string host_of(const std::string& target) {
  std::string text = target;
  for (const char* scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (text.starts_with(scheme)) {
      text.erase(0, std::char_traits<char>::length(scheme));
      break;
    }
  }
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    return close == std::string::npos ? text : text.substr(1, close - 1);
  }
  const auto colon = text.rfind(':');
  // no port, or a bare IPv6 address
  return colon == std::string::npos || text.find(':') != colon ? text : text.substr(0, colon);
}

std::string local_address_to(const sockaddr_storage& towards, int& error) {
  const io::UniqueFd fd(::socket(towards.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (!fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&towards),
                name_service::size_of(towards)) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    error = errno;
    return {};
  }
  return name_service::address_text(own);
}

// any port: nothing is sent
constexpr std::uint16_t kPort = 1;
constexpr const char* kHelp = "; give this node's training address with --address";

}  // namespace

Result<Way> Way::to(const std::string& controller) {
  Way way;
  way.controller_ = controller;
  if (controller.starts_with("unix:") || controller.starts_with("unix-abstract:") ||
      controller.starts_with('/'))
    return way;
  const std::string host = host_of(controller);
  const auto addresses = name_service::addresses_of(host);
  if (!addresses) {
    return fail(ErrorCode::Unreachable, "looking up the controller's host '" + host +
                                            "': " + addresses.error().message + kHelp);
  }
  for (const std::string& text : *addresses) {
    if (const auto address = name_service::socket_address(text, kPort))
      way.addresses_.push_back(*address);
  }
  if (way.addresses_.empty())
    return fail(ErrorCode::Unreachable, "looking up the controller's host '" + host +
                                            "': it has no address for this node" + kHelp);
  return way;
}

Result<std::string> Way::local_address() const {
  if (addresses_.empty()) return "127.0.0.1";
  int error = 0;
  for (const sockaddr_storage& one : addresses_) {
    std::string address = local_address_to(one, error);
    if (!address.empty()) return address == "::1" ? "127.0.0.1" : address;
  }
  return fail(ErrorCode::Unreachable, "finding the interface towards '" + controller_ +
                                          "': " + std::generic_category().message(error) + kHelp);
}

}  // namespace muster::agent
