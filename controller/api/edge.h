// What every API handler works with, and how a unary call is served: the work happens on the
// shell's strand (or behind it, on the archive's or the work thread), Finish is called exactly
// once. Who may call was judged at the port (common/rpc/token_port.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "common/async/loop.h"
#include "common/rpc/status.h"
#include "controller/logs/log_store.h"
#include "controller/shell/shell.h"

namespace muster::controller {

struct Edge {
  Shell& shell;
  logs::LogStore& logs;
  async::Loop& work;  // blocking reads of logs, planning
  std::string cluster_out;
  std::string version;
  // why the disk has no room for new jobs; empty: it has. Any thread
  std::function<std::string()> shortage;
};

inline grpc::Status overloaded() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          "calling the controller: too many requests are waiting for it; try again in a moment"};
}

// `handle(reactor)` must finish it, now or later.
template <class Handle>
grpc::ServerUnaryReactor* serve(grpc::CallbackServerContext* context, Handle&& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  handle(reactor);
  return reactor;
}

// `fill(view)` returns the status, on the strand, when what the view shows is durable.
template <class Fill>
void answer_from_view(const Edge& edge, grpc::ServerUnaryReactor* reactor, Fill fill) {
  const bool taken = edge.shell.read(
      [reactor, fill = std::move(fill)](const View& view) mutable { reactor->Finish(fill(view)); });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
