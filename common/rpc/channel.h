// Channels to a controller and what a call over them needs. Addresses are `unix:/abs/path` or
// `host:port`. There is no TLS yet: a token travels only over a unix socket or loopback, unless the
// operator said otherwise to the daemon that listens.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::rpc {

struct Endpoint {
  std::string address;
  std::string token;  // empty: none needed (a unix socket is guarded by its mode)
};

// Of `unix:/abs/path` or `host:port`; the text says what is wrong with it.
Result<void> check_address(std::string_view address);
[[nodiscard]] bool is_unix(std::string_view address);
[[nodiscard]] bool is_loopback(std::string_view address);  // unix sockets count

// A connection of its own (two channels to one address never share one). A dead peer is noticed
// within 8 s even when nothing is sent. What a channel does by itself to come back is no slower
// than what backoff.h does with a new channel a try.
std::shared_ptr<grpc::Channel> make_channel(const Endpoint& endpoint);
grpc::ChannelArguments channel_arguments();

// `authorization: Bearer <token>`; nothing when the token is empty. Once a call, before it starts.
void authorize(grpc::ClientContext& context, const std::string& token);

// The server's half of keepalive, and what one connection may ask of it.
void tune_server(grpc::ServerBuilder& builder);

inline constexpr int kMessageBytesMax = 16 << 20;  // of an answer
// Of a request: the longest that clients and agents send is a chain of stages
// (spec::kChainBytesMax), and a heartbeat (agent/link/sendable.h), 8 MiB each.
inline constexpr int kRequestBytesMax = 9 << 20;
// Of one connection at a time. A caller beyond it waits at its own end until one of its calls is
// over; an agent has a connection of its own a stream.
inline constexpr int kStreamsMax = 64;

}  // namespace muster::rpc
