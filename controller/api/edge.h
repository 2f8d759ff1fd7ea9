// What every API handler uses, and how it serves a unary call. run() in main.cc owns the Edge.
// Handlers work on the shell's strand, or after it on the archive's thread or the work loop.
//
// Finish is called exactly once. The port has already checked who may call
// (controller/access/call_rules.h). access_of() says to which jobs the caller has a right.
#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "common/async/loop.h"
#include "common/base/time.h"
#include "common/rpc/status.h"
#include "common/rpc/tls_port.h"
#include "controller/access/access.h"
#include "controller/access/revocations.h"
#include "controller/logs/log_store.h"
#include "controller/shell/shell.h"

namespace muster::controller {

struct Edge {
  Shell& shell;
  logs::LogStore& logs;
  async::Loop& work;  // blocking reads of logs, planning
  Access& access;
  std::string cluster_out;  // the parent of outputs of jobs whose ResolvedSpec names none
  std::string version;
  // Why the disk has no room for new jobs. Empty: it has room. Any thread may call it.
  std::function<std::string()> shortage;
  // What GetClusterStatus says of the controller's process; set before the server starts.
  struct Process {
    BootTime started_at{};
    std::filesystem::path state_dir;
    std::filesystem::path endpoint_file = {};  // has the addresses, once it listens
    // Of its own certificate; it may be another one later. Empty: it has none.
    std::function<WallTime()> certificate_ends = {};
  } process = {};
  // Ends the streams of callers whose certificate is revoked. Null: no certificates are checked.
  Revocations* revocations = nullptr;
  std::string inputs_root = {};   // where nodes keep inputs that they fetch
  std::string outputs_root = {};  // the parent of outputs of new jobs; empty: cluster_out

  [[nodiscard]] const std::string& new_outputs() const {
    return outputs_root.empty() ? cluster_out : outputs_root;
  }
};

inline JobAccess access_of(const Edge& edge, const grpc::ServerContextBase& context,
                           std::string_view method) {
  const rpc::Caller caller = rpc::caller_of(context);
  return edge.access.of_call(caller.is_owner, caller.identity, method);
}

inline grpc::Status overloaded() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          "calling the controller: too many requests are waiting for it; try again in a moment"};
}

// For the handler of a stream, which keeps it until OnDone.
inline Revocations::Stay enter(const Edge& edge, grpc::CallbackServerContext* context) {
  return edge.revocations != nullptr ? edge.revocations->enter(*context) : Revocations::Stay();
}

// `handle(reactor)` must finish it, now or later.
template <class Handle>
grpc::ServerUnaryReactor* serve(grpc::CallbackServerContext* context, Handle&& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  handle(reactor);
  return reactor;
}

// `fill(view)` returns the status. It runs on the strand, when everything in the view is durable.
template <class Fill>
void answer_from_view(const Edge& edge, grpc::ServerUnaryReactor* reactor, Fill fill) {
  const bool taken = edge.shell.read(
      [reactor, fill = std::move(fill)](const View& view) mutable { reactor->Finish(fill(view)); });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
