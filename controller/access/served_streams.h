// Streams of services that gRPC serves itself (health, reflection), as an interceptor sees them.
// They end when the certificate of their caller is revoked, like those of the controller's own.
//
// gRPC owns one ServedStream for each such call, and calls it on its threads.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include "common/base/mutex.h"
#include "controller/access/revocations.h"

namespace muster::controller {

class ServedStream final : public grpc::experimental::Interceptor {
 public:
  // Nullptr for all other calls. `revocations` must outlive the server.
  static grpc::experimental::Interceptor* of(grpc::experimental::ServerRpcInfo& call,
                                             Revocations& revocations);

  ServedStream(grpc::ServerContextBase& context, Revocations& revocations)
      : context_(context), revocations_(revocations) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override;

 private:
  void enter();

  grpc::ServerContextBase& context_;
  Revocations& revocations_;
  Mutex mutex_;
  Revocations::Stay stay_ MUSTER_GUARDED_BY(mutex_);
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::controller
