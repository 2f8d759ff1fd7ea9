#include "common/rpc/channel.h"

#include "common/base/host_port.h"
#include "common/base/time.h"
#include "common/pki/identity.h"
#include "common/rpc/backoff.h"
#include "common/rpc/connection_times.h"

namespace muster::rpc {
namespace {

constexpr int kKeepaliveTimeMs = kKeepaliveTime / std::chrono::milliseconds(1);
constexpr int kKeepaliveTimeoutMs = kKeepaliveTimeout / std::chrono::milliseconds(1);
// It is long enough for a lost first packet (sent again after 1 s) and for a server that has to
// greet 2,000 others.
constexpr int kConnectMostMs = 2'000;
constexpr std::size_t kSocketPathMax = 107;  // sun_path, with its terminator

}  // namespace

bool is_unix(std::string_view address) { return address.starts_with("unix:"); }

Result<void> check_address(std::string_view address) {
  const std::string named = "'" + std::string(address) + "'";
  if (is_unix(address)) {
    const std::string_view path = address.substr(5);
    if (!path.starts_with('/'))
      return fail(ErrorCode::InvalidArgument,
                  "address " + named + ": the path of a unix socket must be absolute (unix:/path)");
    if (path.size() > kSocketPathMax) {
      return fail(ErrorCode::InvalidArgument,
                  "address " + named + ": the path has " + std::to_string(path.size()) +
                      " bytes, a unix socket takes 107; choose a shorter one");
    }
    return {};
  }
  if (const auto colon = address.rfind(':'); colon == std::string_view::npos || colon == 0)
    return fail(ErrorCode::InvalidArgument,
                "address " + named + ": neither unix:/path nor host:port");
  if (auto parsed = parse_host_port(address); !parsed)
    return fail(std::move(parsed.error()).in("address " + named));
  return {};
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   kReconnectMin / std::chrono::milliseconds(1));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMax / std::chrono::milliseconds(1));
  // In gRPC this value also limits how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMostMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A proxy variable in a user's environment must not redirect loopback connections.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return arguments;
}

Result<Endpoint> endpoint_at(const std::string& address,
                             const std::filesystem::path& credentials_file) {
  if (auto sound = check_address(address); !sound) return fail(std::move(sound.error()));
  if (is_unix(address)) return Endpoint{.address = address, .credentials = nullptr};
  if (credentials_file.empty()) {
    return fail(ErrorCode::NotAllowed,
                "calling the controller at '" + address +
                    "': over TCP it wants a certificate; name a file with one (--credentials or "
                    "MUSTER_CREDENTIALS); on the controller's machine, 'muster cert issue' makes "
                    "it");
  }
  auto credentials = pki::read_credentials(credentials_file);
  if (!credentials) return fail(std::move(credentials.error()));
  const std::string doing = "using the credentials of '" + credentials_file.string() + "'";
  if (auto valid = credentials->check_time(system_clock().now().wall); !valid)
    return fail(std::move(valid.error()).in(doing));
  return Endpoint{.address = address,
                  .credentials = std::make_shared<const pki::Credentials>(std::move(*credentials))};
}

std::shared_ptr<grpc::Channel> make_channel(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments = channel_arguments();
  if (!endpoint.credentials)
    return grpc::CreateCustomChannel(endpoint.address, grpc::InsecureChannelCredentials(),
                                     arguments);
  const pki::Credentials& own = *endpoint.credentials;
  // The name in the controller's certificate does not depend on its addresses.
  arguments.SetSslTargetNameOverride(pki::controller_host(own.identity.cluster));
  return grpc::CreateCustomChannel(endpoint.address,
                                   grpc::SslCredentials({.pem_root_certs = own.ca_pem,
                                                         .pem_private_key = own.key_pem,
                                                         .pem_cert_chain = own.certificate_pem}),
                                   arguments);
}

void tune_server(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // gRPC's own bound is two minutes.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(kHandshakeMost.count()));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  // gRPC's estimate of bandwidth and delay lets each stream send far more than 64 KiB that nobody
  // reads, and the other end can make it grow. Where somebody waits for a message, gRPC takes all
  // of it in without.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.SetMaxReceiveMessageSize(kRequestBytesMax);
}

}  // namespace muster::rpc
