// The gRPC server: listens on every address, serves the services with reflection and health. Any
// thread; shut_down() blocks until every call has ended.
//
// A unix socket has a lock file beside it, PATH.lock, held for as long as the server is there: gRPC
// takes away whatever socket lies where it binds, and a second controller would leave the first one
// running where nobody finds it. The file stays when the server goes: whoever removes it could
// remove another's.
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
  // 0600 (the process's umask is 077), and ask for nothing more; whoever comes over TCP brings the
  // token.
  static Result<std::unique_ptr<Server>> start(const std::vector<std::string>& addresses,
                                               const std::vector<grpc::Service*>& services,
                                               const std::string& token);

  [[nodiscard]] const std::vector<std::string>& bound() const { return bound_; }
  void shut_down();

 private:
  std::vector<io::UniqueFd> locks_;  // outlive server_
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> bound_;
};

}  // namespace muster::controller
