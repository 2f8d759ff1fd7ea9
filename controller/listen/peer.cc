#include "controller/listen/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace muster::controller {
namespace {

constexpr std::size_t kV4Begin = 12;  // of an IPv4 address within the 16 bytes

bool is_v4(const std::array<std::uint8_t, 16>& address) {
  return std::ranges::all_of(address.begin(), address.begin() + 10,
                             [](std::uint8_t byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

std::array<std::uint8_t, 16> mapped(const in_addr& v4) {
  std::array<std::uint8_t, 16> address{};
  address[10] = address[11] = 0xff;
  std::memcpy(address.data() + kV4Begin, &v4, sizeof(v4));
  return address;
}

// "%5Bfe80::1%252%5D" without its brackets and its interface: "fe80::1".
std::string_view without_brackets(std::string_view host) {
  constexpr std::string_view kOpen = "%5B", kClose = "%5D";
  if (host.starts_with(kOpen)) host.remove_prefix(kOpen.size());
  if (host.ends_with(kClose)) host.remove_suffix(kClose.size());
  if (host.starts_with('[')) host.remove_prefix(1);
  if (host.ends_with(']')) host.remove_suffix(1);
  return host.substr(0, host.find('%'));
}

}  // namespace

std::array<std::uint8_t, 16> Peer::sender() const {
  std::array<std::uint8_t, 16> found = address;
  if (!is_v4(found)) std::fill(found.begin() + 8, found.end(), std::uint8_t{0});
  return found;
}

std::string Peer::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4(address)) {
    ::inet_ntop(AF_INET, address.data() + kV4Begin, text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, address.data(), text.data(), text.size());
  }
  return text.data();
}

std::optional<Peer> Peer::from_socket(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from, sizeof(v4));
    return Peer{.address = mapped(v4.sin_addr), .port = ntohs(v4.sin_port)};
  }
  if (from.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from, sizeof(v6));
  Peer peer{.address = {}, .port = ntohs(v6.sin6_port)};
  std::memcpy(peer.address.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
  return peer;
}

std::optional<Peer> Peer::from_grpc(std::string_view text) {
  constexpr std::string_view kV4 = "ipv4:", kV6 = "ipv6:";
  const bool v4 = text.starts_with(kV4);
  if (!v4 && !text.starts_with(kV6)) return std::nullopt;
  text.remove_prefix(kV4.size());
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Peer peer;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, peer.port);
  if (error != std::errc() || rest != end) return std::nullopt;
  const std::string host(v4 ? text.substr(0, colon) : without_brackets(text.substr(0, colon)));
  if (v4) {
    in_addr address{};
    if (::inet_pton(AF_INET, host.c_str(), &address) != 1) return std::nullopt;
    peer.address = mapped(address);
  } else if (::inet_pton(AF_INET6, host.c_str(), peer.address.data()) != 1) {
    return std::nullopt;
  }
  return peer;
}

}  // namespace muster::controller
