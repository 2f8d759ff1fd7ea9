#include "controller/server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <cerrno>

#include "common/name_service/hosts.h"
#include "common/rpc/channel.h"

namespace muster::controller {
namespace {

std::string socket_path(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  return address.substr(kUnix.size());
}

// A host's name becomes its first address: gRPC's own look-up needs libraries of the host
// (docs/decisions/0017-no-library-of-the-host.md).
Result<std::string> numeric(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (rpc::is_unix(address) || name_service::socket_address(host, 0).has_value()) return address;
  auto found = name_service::addresses_of(host);
  if (!found) return fail(std::move(found.error()).in("listening on '" + address + "'"));
  const std::string& first = found->front();
  return (first.contains(':') ? "[" + first + "]" : first) + address.substr(colon);
}

Result<io::UniqueFd> lock_socket(const std::string& address) {
  const std::string doing = "listening on '" + address + "': ",
                    file = socket_path(address) + ".lock";
  io::UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(doing + "opening its lock file '" + file + "'", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return fail_errno(doing + "locking '" + file + "'", errno);
  return fail(ErrorCode::Io, doing + "another controller serves this socket (it holds '" + file +
                                 "'); stop that one, or choose another path");
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::vector<std::string>& addresses,
                                              const std::vector<grpc::Service*>& services,
                                              const std::shared_ptr<grpc::ServerCredentials>& tcp) {
  auto server = std::make_unique<Server>();
  for (const std::string& address : addresses) {
    if (!rpc::is_unix(address)) continue;
    auto lock = lock_socket(address);
    if (!lock) return fail(std::move(lock.error()));
    server->locks_.push_back(std::move(*lock));
  }
  // Called by name: in a static build nothing else would link the plug-in.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  rpc::tune_server(builder);
  std::vector<int> ports(addresses.size(), -1);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    auto address = numeric(addresses[i]);
    if (!address) return fail(std::move(address.error()));
    builder.AddListeningPort(
        *address, rpc::is_unix(*address) ? grpc::InsecureServerCredentials() : tcp, &ports[i]);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool bound = ports[i] > 0;
    if (!bound || server->server_ == nullptr) {
      const std::string& address = bound ? addresses.back() : addresses[i];
      return fail(ErrorCode::Io, "listening on '" + address +
                                     "': the address is taken, or not this machine's; choose "
                                     "another one, or port 0 for a free one");
    }
    // Made under umask 077, so no other user can connect in between.
    if (rpc::is_unix(addresses[i])) ::chmod(socket_path(addresses[i]).c_str(), 0600);
    server->bound_.push_back(rpc::is_unix(addresses[i])
                                 ? addresses[i]
                                 : addresses[i].substr(0, addresses[i].rfind(':') + 1) +
                                       std::to_string(ports[i]));
  }
  return server;
}

void Server::shut_down() {
  if (server_ == nullptr) return;
  // Open streams do not end by themselves. They are cancelled at once, and unary calls with them;
  // clients and agents try again.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace muster::controller
