// Makes a server port that checks the cluster's token of every call before it reads the request.
// The controller's server owns the credentials. The check runs on gRPC's threads.
//
// A caller without a token costs no more than its headers. A check in a handler would come too
// late: gRPC reads the whole request first, and an unfinished request of any length would stay in
// memory.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

namespace muster::rpc {

// For ServerBuilder::AddListeningPort. Every service of the server is behind the check, health and
// reflection as well. There is no TLS; addresses are those of channel.h. A call without the token
// or with another one gets UNAUTHENTICATED with a sentence. The comparison takes constant time.
std::shared_ptr<grpc::ServerCredentials> token_credentials(std::string token);

}  // namespace muster::rpc
