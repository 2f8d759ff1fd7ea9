#include "common/rpc/call_end.h"

#include <grpc/grpc.h>

#include <memory>

namespace muster::rpc {

std::function<void(const grpc::Status&)> ender_of(grpc::ServerContextBase& context) {
  ::grpc_call_ref(context.c_call());
  const std::shared_ptr<grpc_call> call(context.c_call(), ::grpc_call_unref);
  return [call](const grpc::Status& status) {
    ::grpc_call_cancel_with_status(call.get(), static_cast<grpc_status_code>(status.error_code()),
                                   status.error_message().c_str(), nullptr);
  };
}

}  // namespace muster::rpc
