// Server listens on every address, and serves the services with reflection and health. run() in
// main.cc owns it. It may be used on any thread; shut_down() blocks until every call has ended.
//
// A unix socket has a lock file in the same directory, PATH.lock, which is locked while the server
// exists. gRPC removes any socket at the path where it binds. So without the lock, a second
// controller would leave the first one running where nobody finds it. The lock file stays when the
// server ends: a process that removes it could remove another server's lock.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::controller {

class Server {
 public:
  // `addresses` as in --listen; bound() has the ports that were found for :0. Unix sockets get mode
  // 0600 (the process's umask is 077), and need no other credential. TCP ports get `tcp`
  // (common/rpc/tls_port.h).
  static Result<std::unique_ptr<Server>> start(const std::vector<std::string>& addresses,
                                               const std::vector<grpc::Service*>& services,
                                               const std::shared_ptr<grpc::ServerCredentials>& tcp);

  [[nodiscard]] const std::vector<std::string>& bound() const { return bound_; }
  void shut_down();

 private:
  std::vector<io::UniqueFd> locks_;  // must outlive server_
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> bound_;
};

}  // namespace muster::controller
