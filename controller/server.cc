#include "controller/server.h"

#include <unistd.h>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/host_port.h"
#include "common/io/descriptor_limit.h"
#include "common/log/log.h"
#include "common/name_service/hosts.h"
#include "common/rpc/channel.h"
#include "common/rpc/connection_times.h"
#include "controller/access/served_streams.h"
#include "controller/enrol/limits.h"
#include "controller/listen/peer.h"
#include "controller/listen/socket.h"

namespace muster::controller {
namespace {

std::string socket_path(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  return address.substr(kUnix.size());
}

// A host's name becomes its first address: gRPC's own look-up needs libraries of the host
// (docs/decisions/0017-no-library-of-the-host.md).
Result<std::string> numeric(const std::string& address) {
  if (rpc::is_unix(address)) return address;
  const std::string doing = "listening on '" + address + "'";
  const auto parsed = parse_host_port(address);
  if (!parsed) return fail(Error(parsed.error()).in(doing));
  if (name_service::socket_address(parsed->host, 0).has_value()) return address;
  auto found = name_service::addresses_of(parsed->host);
  if (!found) return fail(std::move(found.error()).in(doing));
  const std::string& first = found->front();
  return (first.contains(':') ? "[" + first + "]" : first) + ":" + std::to_string(parsed->port);
}

// gRPC's own timer for a handshake begins a little later than the count.
constexpr Duration kHandshakeCounted = rpc::kHandshakeMost + std::chrono::seconds(2);

// Sees each call that the port's checks (common/rpc/tls_port.h) let through, before its handler.
class CallsSeen final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CallsSeen(Connections& connections, Revocations* revocations)
      : connections_(connections), revocations_(revocations) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    grpc::ServerContextBase& context = *call->server_context();
    if (is_known(context)) see(context);
    return revocations_ != nullptr ? ServedStream::of(*call, *revocations_) : nullptr;
  }

  // False here: the context knows its call only later. It is so with the threads that serve
  // reflection.
  static bool is_known(const grpc::ServerContextBase& context) { return !context.peer().empty(); }
  void see(grpc::ServerContextBase& context) {
    if (const auto peer = Peer::from_grpc(context.peer())) {
      connections_.has_called({.peer = *peer, .connection = rpc::connection_of(context)},
                              [&] { return owner_of(rpc::caller_of(context)); });
    }
  }

 private:
  // The port's checks let only certificates of users and nodes through.
  [[nodiscard]] ConnectionOwner owner_of(const rpc::Caller& caller) const {
    if (!caller.identity) return {.name = {}, .most = INT32_MAX};
    ConnectionOwner owner = connections_.owner(*caller.identity);
    if (revocations_ == nullptr) return owner;
    auto revoked = std::make_shared<std::atomic<bool>>(false);
    owner.keeps = std::make_shared<Revocations::Stay>(
        revocations_->enter(caller, [revoked](const grpc::Status&) { *revoked = true; }));
    owner.revoked = std::move(revoked);
    return owner;
  }

  Connections& connections_;
  Revocations* const revocations_;
};

// Calls `begins` when the stream begins, and says when a message of it is whole.
class MessagesSeen final : public grpc::experimental::Interceptor {
 public:
  MessagesSeen(std::function<void()> begins, std::shared_ptr<std::atomic<bool>> came)
      : begins_(std::move(begins)), came_(std::move(came)) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA))
      begins_();
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) *came_ = true;
    batch->Proceed();
  }

 private:
  const std::function<void()> begins_;
  const std::shared_ptr<std::atomic<bool>> came_;
};

// Of the controller's own services only nodes may call a method that takes a stream of messages,
// and their agents open a connection for each stream. Users may call reflection.
class StreamsSeen final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  StreamsSeen(Connections& connections, CallsSeen& calls)
      : connections_(connections), calls_(calls) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    using Type = grpc::experimental::ServerRpcInfo::Type;
    if (call->type() != Type::BIDI_STREAMING && call->type() != Type::CLIENT_STREAMING)
      return nullptr;
    grpc::ServerContextBase& context = *call->server_context();
    const auto came = std::make_shared<std::atomic<bool>>(false);
    return new MessagesSeen(
        [this, &context, is_seen = CallsSeen::is_known(context), came] {
          if (!is_seen) calls_.see(context);
          connections_.has_stream(rpc::connection_of(context).get(), came);
        },
        came);
  }

 private:
  Connections& connections_;
  CallsSeen& calls_;
};

class AnswersSeen final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AnswersSeen(UnreadAnswers& answers) : answers_(answers) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    const rpc::Caller caller = rpc::caller_of(*call->server_context());
    return caller.identity ? answers_.of(*call, pki::text_of(*caller.identity)) : nullptr;
  }

 private:
  UnreadAnswers& answers_;
};

// gRPC serves reflection, and here nothing else, with a thread for each stream. More streams than
// this are answered with RESOURCE_EXHAUSTED.
void bound_threads(grpc::ServerBuilder& builder) {
  constexpr int kThreadsMost = 32;
  grpc::ResourceQuota quota("threads");
  quota.SetMaxThreads(kThreadsMost);
  builder.SetResourceQuota(quota);
  // Each of these needs threads at the start; gRPC aborts if the quota has too few.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
}

using GrpcPort = grpc::experimental::ExternalConnectionAcceptor;

std::shared_ptr<GrpcPort> add_port(grpc::ServerBuilder& builder,
                                   std::shared_ptr<grpc::ServerCredentials> credentials) {
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
}

// gRPC closes the descriptor when the connection is over.
void hand_over(GrpcPort& port, int fd) {
  GrpcPort::NewConnectionParameters connection;
  connection.fd = fd;
  port.HandleNewConnection(&connection);
}

}  // namespace

std::shared_ptr<Connections> Server::make_connections() {
  const std::size_t descriptors = io::descriptor_limit();
  return std::make_shared<Connections>(
      bounds_for(descriptors, enrol_limits_for(descriptors).connections), kHandshakeCounted);
}

Server::Server(std::shared_ptr<Connections> connections)
    : connections_(std::move(connections)),
      answers_([](const std::string& line) { log::warn(line); }) {}

Server::~Server() { shut_down(); }

Result<std::vector<io::UniqueFd>> Server::bind(const std::vector<std::string>& addresses) {
  std::vector<io::UniqueFd> listening;
  for (const std::string& address : addresses) {
    const auto at = numeric(address);
    if (!at) return fail(Error(at.error()));
    auto socket = rpc::is_unix(*at) ? listen_unix(socket_path(*at)) : listen_tcp(*at);
    if (!socket) return fail(std::move(socket.error()).in("listening on '" + address + "'"));
    if (rpc::is_unix(address)) sockets_.push_back(socket_path(address));
    bound_.push_back(rpc::is_unix(address) ? address
                                           : address.substr(0, address.rfind(':') + 1) +
                                                 std::to_string(socket->port));
    listening.push_back(std::move(socket->fd));
  }
  return listening;
}

Result<std::unique_ptr<Server>> Server::start(const std::vector<std::string>& addresses,
                                              const std::vector<grpc::Service*>& services,
                                              const std::shared_ptr<grpc::ServerCredentials>& tcp,
                                              Revocations* revocations,
                                              std::shared_ptr<Connections> connections) {
  if (connections == nullptr) connections = make_connections();
  std::unique_ptr<Server> server(new Server(std::move(connections)));
  for (const std::string& address : addresses) {
    if (!rpc::is_unix(address)) continue;
    auto lock = lock_unix(socket_path(address));
    if (!lock) return fail(std::move(lock.error()).in("listening on '" + address + "'"));
    server->locks_.push_back(std::move(*lock));
  }
  auto listening = server->bind(addresses);
  if (!listening) return fail(std::move(listening.error()));
  // Called by name: in a static build nothing else would link the plug-in.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  rpc::tune_server(builder);
  bound_threads(builder);
  std::shared_ptr<GrpcPort> unix_port, tcp_port;
  if (std::ranges::any_of(addresses, rpc::is_unix))
    unix_port = add_port(builder, grpc::InsecureServerCredentials());
  if (!std::ranges::all_of(addresses, rpc::is_unix)) {
    tcp_port = add_port(builder, tcp);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> seen;
    auto calls = std::make_unique<CallsSeen>(*server->connections_, revocations);
    auto streams = std::make_unique<StreamsSeen>(*server->connections_, *calls);
    seen.push_back(std::move(calls));
    seen.push_back(std::move(streams));
    seen.push_back(std::make_unique<AnswersSeen>(server->answers_));
    builder.experimental().SetInterceptorCreators(std::move(seen));
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr)
    return fail(ErrorCode::Internal, "listening on '" + addresses.front() +
                                         "': gRPC does not serve it, and gives no reason");
  std::vector<Acceptor::Port> ports;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool is_unix = rpc::is_unix(addresses[i]);
    ports.push_back({.fd = std::move((*listening)[i]),
                     .address = server->bound_[i],
                     .counted = !is_unix,
                     .hand_over = [port = is_unix ? unix_port : tcp_port](int fd) {
                       muster::controller::hand_over(*port, fd);
                     }});
  }
  server->acceptor_ = std::make_unique<Acceptor>(
      std::move(ports), *server->connections_, system_clock(),
      Acceptor::Hooks{.warn = [](const std::string& line) { log::warn(line); },
                      .accept =
                          [](int fd, sockaddr* from, socklen_t* size) {
                            return ::accept4(fd, from, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
                          }});
  server->acceptor_->begin();
  return server;
}

void Server::shut_down() {
  if (acceptor_ != nullptr) acceptor_->stop();
  for (const std::string& path : std::exchange(sockets_, {})) ::unlink(path.c_str());
  if (server_ == nullptr) return;
  // Open streams do not end by themselves. They are cancelled at once, and unary calls with them;
  // clients and agents try again.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace muster::controller
