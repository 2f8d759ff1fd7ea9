// Error <-> grpc::Status: the one table. The text travels in the message, unchanged up to what gRPC
// takes; of a longer one the beginning.
#pragma once

#include <grpcpp/support/status.h>

#include "common/base/error.h"

namespace muster::rpc {

grpc::Status to_status(const Error& error);
// Of a status that is not OK.
Error to_error(const grpc::Status& status);

}  // namespace muster::rpc
