// LiveTls is what a TCP port shows and trusts in a handshake: the server's certificate and key, and
// the CAs of its callers. It may be replaced while the port is open. Connections that are open keep
// what they have; each later handshake takes the new one. The controller's server and whoever
// changes the CA share it. Thread-safe.
//
// gRPC's C++ interface has no such credentials, its C interface has: gRPC asks for the present
// configuration at each handshake (grpc/grpc_security.h, "certificate config fetcher").
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "common/base/mutex.h"
#include "common/pki/credentials.h"

namespace muster::rpc {

class LiveTls {
 public:
  explicit LiveTls(pki::Credentials own) : own_(std::move(own)) {}
  void replace(pki::Credentials own);

  struct Present {
    pki::Credentials own;
    std::uint64_t version = 0;  // another one at each replacement
  };
  [[nodiscard]] Present present() const;

 private:
  mutable Mutex mutex_;
  pki::Credentials own_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t version_ MUSTER_GUARDED_BY(mutex_) = 1;
};

// One connection of such a port: no other one has the same as long as it is open, or somebody has
// the pointer that connection_of() returns for a call over it. It is null for other ports.
using ConnectionId = const void*;
std::shared_ptr<const void> connection_of(grpc::ServerContextBase& call);

// The answer to a call: of its connection, the certificate (PEM; empty: none or several) and the
// method. It is called on gRPC's threads before anything else of the call is read.
using CallCheck = std::function<grpc::Status(ConnectionId connection, std::string_view certificate,
                                             std::string_view method)>;

// For one port of one server. Every connection must show a certificate of a CA in `tls`.
std::shared_ptr<grpc::ServerCredentials> live_credentials(std::shared_ptr<LiveTls> tls,
                                                          CallCheck check);

}  // namespace muster::rpc
