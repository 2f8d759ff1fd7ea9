// A port of a server that asks every call for the cluster's token before it reads anything of it: a
// caller without one costs no more than its headers. What a handler could refuse is read first,
// whole, and an unfinished request of any length would stay in memory.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

namespace muster::rpc {

// For ServerBuilder::AddListeningPort. Every service of the server is behind it, health and
// reflection as well. Without TLS: addresses of channel.h. A call without the token, or with
// another one, is answered UNAUTHENTICATED with a sentence. Compared in constant time; on gRPC's
// threads.
std::shared_ptr<grpc::ServerCredentials> token_credentials(std::string token);

}  // namespace muster::rpc
