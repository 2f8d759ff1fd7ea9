// Peer is the other end of a TCP connection: its address and port, from a socket's address or from
// the text that gRPC has for it. Plain value; any thread.
//
// Source of the text: grpc::ServerContext::peer() of gRPC 1.51, "ipv4:10.0.0.1:4567" and
// "ipv6:%5Bfe80::1%252%5D:4567", which is a URI with its escapes.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::controller {

struct Peer {
  std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d; without %interface
  std::uint16_t port = 0;

  // What one sender can choose addresses from: an IPv4 address, or the first half of an IPv6
  // address, of which a host can have as many as it likes.
  [[nodiscard]] std::array<std::uint8_t, 16> sender() const;
  // For people: "10.0.0.1", "fd00::7".
  [[nodiscard]] std::string text() const;

  // Empty: neither IPv4 nor IPv6.
  static std::optional<Peer> from_socket(const sockaddr_storage& address);
  static std::optional<Peer> from_grpc(std::string_view text);

  friend bool operator==(const Peer&, const Peer&) = default;
};

}  // namespace muster::controller
