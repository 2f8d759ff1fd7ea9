#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>

namespace muster::rpc {

void silence_grpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace muster::rpc
