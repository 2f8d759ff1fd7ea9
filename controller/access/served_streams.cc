#include "controller/access/served_streams.h"

#include <string_view>
#include <utility>

namespace muster::controller {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::ServerRpcInfo;

grpc::experimental::Interceptor* ServedStream::of(ServerRpcInfo& call, Revocations& revocations) {
  const bool is_stream = call.type() != ServerRpcInfo::Type::UNARY;
  if (!is_stream || !std::string_view(call.method()).starts_with("/grpc.")) return nullptr;
  return new ServedStream(*call.server_context(), revocations);
}

void ServedStream::Intercept(grpc::experimental::InterceptorBatchMethods* batch) {
  if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA))
    enter();
  if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_CLOSE)) {
    // After this gRPC may destroy the call.
    const MutexLock lock(mutex_);
    closed_ = true;
    stay_.leave();
  }
  batch->Proceed();
}

void ServedStream::enter() {
  Revocations::Stay stay = revocations_.enter(context_);  // may end the call, so without the lock
  const MutexLock lock(mutex_);
  if (!closed_) stay_ = std::move(stay);
}

}  // namespace muster::controller
