// Finds the training address: it asks the kernel which local address a packet to the controller
// would have. A UDP connect sends nothing.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "agent/probe/inventory.h"

namespace muster::agent {
namespace {

struct HostPort {
  std::string host, port;
};

HostPort split(const std::string& target) {
  std::string text = target;
  for (const char* scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (text.starts_with(scheme)) {
      text.erase(0, std::char_traits<char>::length(scheme));
      break;
    }
  }
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) return {text, "1"};
    return {text.substr(1, close - 1), close + 2 <= text.size() ? text.substr(close + 2) : "1"};
  }
  const auto colon = text.rfind(':');
  // no port, or a bare IPv6 address
  if (colon == std::string::npos || text.find(':') != colon) return {text, "1"};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string local_address_to(const sockaddr_storage& towards, int& error) {
  const int fd = socket(towards.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = errno;
    return {};
  }
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  std::string result;
  const socklen_t length =
      towards.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&towards), length) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0)
      result = text.data();
  } else {
    error = errno;
  }
  close(fd);
  return result;
}

constexpr const char* kHelp = "; give this node's training address with --address";

}  // namespace

Result<Way> Way::to(const std::string& controller) {
  Way way;
  way.controller_ = controller;
  if (controller.starts_with("unix:") || controller.starts_with("unix-abstract:") ||
      controller.starts_with('/'))
    return way;
  const auto [host, port] = split(controller);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int rc = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); rc != 0) {
    return fail(ErrorCode::Unreachable,
                "looking up the controller's host '" + host + "': " + gai_strerror(rc) + kHelp);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    sockaddr_storage& address = way.addresses_.emplace_back();
    std::memcpy(&address, one->ai_addr, std::min<std::size_t>(one->ai_addrlen, sizeof(address)));
  }
  if (way.addresses_.empty())
    return fail(ErrorCode::Unreachable,
                "looking up the controller's host '" + host + "': it has no IP address" + kHelp);
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
