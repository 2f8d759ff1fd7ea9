// One life of the control stream (AgentService.Connect), gRPC's side: callbacks convert, post to
// the loop and return. Knows no rules of the protocol but the transport's: one read and one write
// outstanding.
//
// Methods and handlers: on the loop. It holds itself until gRPC is done with it; `gate` is entered
// for that long. After on_done nothing comes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "common/async/gate.h"
#include "common/async/loop.h"
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
  // Nothing: the gate is closed.
  static std::shared_ptr<ControlStream> open(async::Loop& loop, async::Gate& gate,
                                             const rpc::Endpoint& endpoint, Handlers handlers);

  // What is sent goes through make_sendable() first.
  // In order. Nothing is lost but with the stream. `behind_heartbeat`: a heartbeat that waits goes
  // before
  // it; else it overtakes that one.
  void send(v1::ConnectRequest request, bool behind_heartbeat = false);
  // Latest wins: a heartbeat that waits behind a slow stream is replaced.
  void send_heartbeat(v1::ConnectRequest heartbeat);
  // Ends it; on_done follows.
  void close();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  ControlStream(async::Loop& loop, async::Gate& gate, Handlers handlers)
      : loop_(loop), gate_(gate), handlers_(std::move(handlers)) {}
  void write_next();
  void ended();

  async::Loop& loop_;
  async::Gate& gate_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<ControlStream> self_;  // until OnDone
  v1::ConnectResponse incoming_;         // gRPC's between StartRead and OnReadDone

  // The loop's.
  Handlers handlers_;
  std::deque<v1::ConnectRequest> queue_;
  std::optional<v1::ConnectRequest> heartbeat_;
  v1::ConnectRequest outgoing_;  // gRPC's while writing_
  bool writing_ = false;
  bool ended_ = false;  // no further operation may be started
};

}  // namespace muster::agent
