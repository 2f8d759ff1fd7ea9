// Server listens on every address, and serves the services with reflection and health. Doors
// (doors.h) own it. It may be used on any thread; shut_down() blocks until every call has ended.
//
// It accepts connections itself (listen/acceptor.h) and gives them to gRPC.
//
// A unix socket has a lock file in the same directory, PATH.lock, which is locked while the server
// exists. A socket at the path is replaced. So without the lock, a second
// controller would leave the first one running where nobody finds it. The lock file stays when the
// server ends: a process that removes it could remove another server's lock.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "controller/access/revocations.h"
#include "controller/listen/acceptor.h"
#include "controller/listen/connections.h"
#include "controller/listen/unread_answers.h"

namespace muster::controller {

class Server {
 public:
  ~Server();
  // `addresses` as in --listen; bound() has the ports that were found for :0. Unix sockets get mode
  // 0600 (the process's umask is 077), and need no other credential. TCP ports get `tcp`
  // (common/rpc/tls_port.h), whose checks tell `connections` (null: nobody is told) which calls
  // begin. `revocations` (null: nothing is revoked) must outlive the server.
  static Result<std::unique_ptr<Server>> start(const std::vector<std::string>& addresses,
                                               const std::vector<grpc::Service*>& services,
                                               const std::shared_ptr<grpc::ServerCredentials>& tcp,
                                               Revocations* revocations = nullptr,
                                               std::shared_ptr<Connections> connections = nullptr);
  // With the bounds of this process.
  static std::shared_ptr<Connections> make_connections();

  [[nodiscard]] const std::vector<std::string>& bound() const { return bound_; }
  void shut_down();

 private:
  explicit Server(std::shared_ptr<Connections> connections);
  // The listening sockets, in the order of the addresses.
  Result<std::vector<io::UniqueFd>> bind(const std::vector<std::string>& addresses);

  std::vector<io::UniqueFd> locks_;  // until the sockets are removed
  std::vector<std::string> sockets_;
  const std::shared_ptr<Connections> connections_;
  UnreadAnswers answers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::string> bound_;
};

}  // namespace muster::controller
