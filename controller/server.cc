#include "controller/server.h"

#include <sys/stat.h>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include "common/rpc/channel.h"

namespace muster::controller {

Result<std::unique_ptr<Server>> Server::start(const std::vector<std::string>& addresses, const std::vector<grpc::Service*>& services) {
  // By name: in a static build nobody else would pull the plug-in in.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  rpc::tune_server(builder);
  std::vector<int> ports(addresses.size(), -1);
  for (std::size_t i = 0; i < addresses.size(); ++i) builder.AddListeningPort(addresses[i], grpc::InsecureServerCredentials(), &ports[i]);
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto server = std::make_unique<Server>();
  server->server_ = builder.BuildAndStart();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool bound = ports[i] > 0;
    if (!bound || server->server_ == nullptr) {
      const std::string& address = bound ? addresses.back() : addresses[i];
      return fail(ErrorCode::Io, "listening on '" + address + "': the address is taken, or not this machine's; choose another one, or port 0 for a free one");
    }
    // Made under umask 077, so nobody else could come in between.
    constexpr std::string_view kUnix = "unix:";
    if (rpc::is_unix(addresses[i])) ::chmod(addresses[i].substr(kUnix.size()).c_str(), 0600);
    server->bound_.push_back(rpc::is_unix(addresses[i]) ? addresses[i] : addresses[i].substr(0, addresses[i].rfind(':') + 1) + std::to_string(ports[i]));
  }
  return server;
}

void Server::shut_down() {
  if (server_ == nullptr) return;
  // Open streams do not end by themselves: they are cancelled at once, unary calls with them; clients and agents try again.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace muster::controller
