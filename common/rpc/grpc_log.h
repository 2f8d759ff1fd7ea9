// Keeps gRPC's own log lines out of the programs' stderr, and hears of failed handshakes in them. A
// function of the process.
#pragma once

#include <functional>
#include <string_view>

namespace muster::rpc {

// main() calls it before anything else uses gRPC. gRPC writes a line for every failed handshake:
// whoever reaches a port could fill the log, and a client would show it in front of muster's own
// sentence. With GRPC_VERBOSITY in the environment gRPC logs as it says, and nobody hears of it.
void silence_grpc();

// As long as it lives, `heard` is called for each handshake that fails in this process, with
// OpenSSL's reason ("certificate verify failed"). gRPC 1.51 says that in its log alone, and does
// not say whose handshake it was. Called on gRPC's threads, one call at a time. After
// silence_grpc(); one object at a time.
class FailedHandshakes {
 public:
  explicit FailedHandshakes(std::function<void(std::string_view why)> heard);
  FailedHandshakes(const FailedHandshakes&) = delete;
  FailedHandshakes& operator=(const FailedHandshakes&) = delete;
  ~FailedHandshakes();
};

}  // namespace muster::rpc
