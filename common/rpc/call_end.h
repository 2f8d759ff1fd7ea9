// Ends a server's call from outside of its reactor. Stateless; any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>

namespace muster::rpc {

// What it returns ends the call with a status, whatever its reactor does at that moment: a write
// that a stalled peer never takes does not delay it. The reactor gets OnCancel. Any thread may call
// it, also when the call is over, but not with a lock that the reactor's callbacks take: they may
// run before it returns. It refers to the call, and must be destroyed at the latest in OnDone.
std::function<void(const grpc::Status&)> ender_of(grpc::ServerContextBase& context);

}  // namespace muster::rpc
