// Makes channels to a controller and sets up the calls over them. Stateless functions; the caller
// owns the channel. Any thread.
//
// Addresses are `unix:/abs/path` or `host:port`. There is no TLS yet: a token travels only over a
// unix socket or loopback, unless the operator has allowed more in the listening daemon's options.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::rpc {

struct Endpoint {
  std::string address;
  std::string token;  // empty: none needed (the mode of a unix socket guards it)
};

// Accepts `unix:/abs/path` or `host:port`; the error names what is wrong.
Result<void> check_address(std::string_view address);
[[nodiscard]] bool is_unix(std::string_view address);
[[nodiscard]] bool is_loopback(std::string_view address);  // unix sockets count

// Each channel has a connection of its own: two channels to one address never share one. It notices
// a dead peer within 8 s, even when nothing is sent. Its own reconnects are no slower than a new
// channel for each try with backoff.h.
std::shared_ptr<grpc::Channel> make_channel(const Endpoint& endpoint);
grpc::ChannelArguments channel_arguments();

// Adds `authorization: Bearer <token>`, or nothing when the token is empty. Call it once for each
// call, before the call starts.
void authorize(grpc::ClientContext& context, const std::string& token);

// Sets the server's half of keepalive, and the limits of one connection.
void tune_server(grpc::ServerBuilder& builder);

inline constexpr int kMessageBytesMax = 16 << 20;  // of an answer
// Of a request. The longest ones that clients and agents send have 8 MiB each: a chain of stages
// (spec::kChainBytesMax) and a heartbeat (agent/link/sendable.h).
inline constexpr int kRequestBytesMax = 9 << 20;
// Calls at a time on one connection. A caller beyond that waits at its own end until one of its
// calls is over. An agent has a separate connection for each stream.
inline constexpr int kStreamsMax = 64;

}  // namespace muster::rpc
