// Makes channels to a controller and sets up the calls over them. Stateless functions; the caller
// owns the channel. Any thread.
//
// Addresses are `unix:/abs/path` or `host:port`. A unix socket is guarded by its mode. Over TCP
// there is TLS and nothing else: the caller has a certificate of the cluster (common/pki), and
// insists on the controller's.
#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/credentials.h"

namespace muster::rpc {

struct Endpoint {
  std::string address;
  std::shared_ptr<const pki::Credentials> credentials;  // none for a unix socket
};

// Finds out how to call `address`. Over TCP it reads the credentials file, and checks that the
// certificate is valid by this machine's clock. Errors: InvalidArgument (the address), NotAllowed
// (no credentials are named, or they do not count), those of pki::read_credentials.
Result<Endpoint> endpoint_at(const std::string& address,
                             const std::filesystem::path& credentials_file);

// Accepts `unix:/abs/path` or `host:port`; the error names what is wrong.
Result<void> check_address(std::string_view address);
[[nodiscard]] bool is_unix(std::string_view address);

// Each channel has a connection of its own: two channels to one address never share one. It notices
// a dead peer within 8 s, even when nothing is sent. Its own reconnects are no slower than a new
// channel for each try with backoff.h.
std::shared_ptr<grpc::Channel> make_channel(const Endpoint& endpoint);
grpc::ChannelArguments channel_arguments();

// Sets the server's half of keepalive, and the limits of one connection.
void tune_server(grpc::ServerBuilder& builder);

inline constexpr int kMessageBytesMax = 16 << 20;  // of an answer
// Of a request. The longest ones that clients and agents send have 8 MiB each: a chain of stages
// (spec::kChainBytesMax) and a heartbeat (agent/link/sendable.h).
inline constexpr int kRequestBytesMax = 9 << 20;
// Calls at a time on one connection. A caller beyond that waits at its own end until one of its
// calls is over. An agent has a separate connection for each stream.
inline constexpr int kStreamsMax = 16;

}  // namespace muster::rpc
