// ControlStream is one connection of the control stream (AgentService.Connect). Link opens it, and
// it keeps itself alive until gRPC has finished with it. Its methods and handlers run on the loop;
// gRPC's callbacks convert, post to the loop and return.
//
// It knows only the rules of the transport: one read and one write may be outstanding. It stays
// entered in `gate` until gRPC has finished with it. No handler is called after on_done.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "common/async/gate.h"
#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {

class ControlStream final : public grpc::ClientBidiReactor<v1::ConnectRequest, v1::ConnectResponse>,
                            public std::enable_shared_from_this<ControlStream> {
 public:
  struct Handlers {
    std::function<void(v1::ConnectResponse)> on_message;
    std::function<void(const grpc::Status&)> on_done;  // once, last
  };
  // Returns null if the gate is closed.
  static std::shared_ptr<ControlStream> open(async::Loop& loop, async::Gate& gate,
                                             const rpc::Endpoint& endpoint, Handlers handlers);

  // Each message passes make_sendable() before it is sent. Messages are sent in order, and are lost
  // only if the stream ends. With `behind_heartbeat`, a waiting heartbeat is sent before the
  // request; otherwise the request overtakes the heartbeat.
  void send(v1::ConnectRequest request, bool behind_heartbeat = false);
  // The latest heartbeat wins: it replaces one that still waits because the stream is slow.
  void send_heartbeat(v1::ConnectRequest heartbeat);
  // Ends the stream; on_done follows.
  void close();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  ControlStream(async::Loop& loop, async::Gate& gate, Handlers handlers)
      : loop_(loop), gate_(gate), handlers_(std::move(handlers)) {}
  void write_next();
  void received(v1::ConnectResponse message);
  void wrote(bool ok);
  void ended();
  void done(const grpc::Status& status);

  async::Loop& loop_;
  async::Gate& gate_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<ControlStream> self_;  // until OnDone
  v1::ConnectResponse incoming_;         // used by gRPC between StartRead and OnReadDone

  Handlers handlers_ MUSTER_GUARDED_BY(loop_);
  std::deque<v1::ConnectRequest> queue_ MUSTER_GUARDED_BY(loop_);
  std::optional<v1::ConnectRequest> heartbeat_ MUSTER_GUARDED_BY(loop_);
  v1::ConnectRequest outgoing_ MUSTER_GUARDED_BY(loop_);  // used by gRPC while writing_
  bool writing_ MUSTER_GUARDED_BY(loop_) = false;
  bool ended_ MUSTER_GUARDED_BY(loop_) = false;  // no further operation may be started
};

}  // namespace muster::agent
