#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <utility>

#include "common/base/mutex.h"

namespace muster::rpc {
namespace {

// gRPC's log function has no state of its own.
struct Listener {
  Mutex mutex;
  std::function<void(std::string_view)> heard MUSTER_GUARDED_BY(mutex);
};
Listener& listener() {
  static Listener one;
  return one;
}

// "Handshake failed with fatal error SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify
// failed." (ssl_transport_security.cc)
std::string_view reason_in(std::string_view line) {
  if (!line.starts_with("Handshake failed with fatal error")) return {};
  const auto colon = line.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view reason = line.substr(colon + 1);
  while (reason.ends_with('.')) reason.remove_suffix(1);
  return reason;
}

void on_line(gpr_log_func_args* line) {
  const std::string_view reason = reason_in(line->message);
  if (reason.empty()) return;
  Listener& to = listener();
  const MutexLock lock(to.mutex);
  if (to.heard) to.heard(reason);
}

}  // namespace

void silence_grpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function(on_line);
}

FailedHandshakes::FailedHandshakes(std::function<void(std::string_view)> heard) {
  Listener& to = listener();
  const MutexLock lock(to.mutex);
  to.heard = std::move(heard);
}

FailedHandshakes::~FailedHandshakes() {
  Listener& to = listener();
  const MutexLock lock(to.mutex);
  to.heard = nullptr;
}

}  // namespace muster::rpc
