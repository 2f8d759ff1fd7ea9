// Keeps gRPC's own log lines out of the programs' stderr. A function of the process.
#pragma once

namespace muster::rpc {

// main() calls it before anything else uses gRPC. gRPC writes a line for every failed handshake:
// whoever reaches a port could fill the log, and a client would show it in front of muster's own
// sentence. With GRPC_VERBOSITY in the environment gRPC logs as it says.
void silence_grpc();

}  // namespace muster::rpc
