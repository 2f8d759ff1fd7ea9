// How long a connection may be silent, and how long it may take to begin. Constants, for
// channels and servers (channel.cc) and for sockets that gRPC does not make itself.
#pragma once

#include <chrono>

namespace muster::rpc {

inline constexpr std::chrono::milliseconds kKeepaliveTime{5'000};
inline constexpr std::chrono::milliseconds kKeepaliveTimeout{3'000};
// Of TLS and of HTTP/2, at the server.
inline constexpr std::chrono::milliseconds kHandshakeMost{10'000};

}  // namespace muster::rpc
