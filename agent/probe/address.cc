// The training address by rule: ask the kernel which local address it would use towards the controller. A UDP connect sends nothing.
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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
  if (colon == std::string::npos || text.find(':') != colon) return {text, "1"};  // none, or a bare IPv6 address
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string local_address(const addrinfo& towards, int& error) {
  const int fd = socket(towards.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = errno;
    return {};
  }
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  std::string result;
  if (connect(fd, towards.ai_addr, towards.ai_addrlen) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0) result = text.data();
  } else {
    error = errno;
  }
  close(fd);
  return result;
}

}  // namespace

Result<std::string> address_towards(const std::string& controller) {
  if (controller.starts_with("unix:") || controller.starts_with("unix-abstract:") || controller.starts_with('/')) return "127.0.0.1";
  const auto [host, port] = split(controller);
  const std::string help = "; give this node's training address with --address";
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int rc = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); rc != 0) {
    return fail(ErrorCode::Unreachable, "looking up the controller's host '" + host + "': " + gai_strerror(rc) + help);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::string address = local_address(*one, error);
    if (!address.empty()) return address == "::1" ? "127.0.0.1" : address;
  }
  return fail(ErrorCode::Unreachable, "finding the interface towards '" + controller + "': " + std::generic_category().message(error) + help);
}

}  // namespace muster::agent
