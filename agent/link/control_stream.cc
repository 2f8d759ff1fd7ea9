#include "agent/link/control_stream.h"

#include "agent/link/sendable.h"

namespace muster::agent {

std::shared_ptr<ControlStream> ControlStream::open(async::Loop& loop, async::Gate& gate,
                                                   const rpc::Endpoint& endpoint,
                                                   Handlers handlers) {
  loop.assert_on();
  if (!gate.enter()) return nullptr;
  std::shared_ptr<ControlStream> stream(new ControlStream(loop, gate, std::move(handlers)));
  stream->self_ = stream;
  // Each try has its own channel, so that only Link decides when to try again. Otherwise Link's
  // back-off and the channel's back-off would add up.
  stream->channel_ = rpc::make_channel(endpoint);
  stream->stub_ = v1::AgentService::NewStub(stream->channel_);
  stream->stub_->async()->Connect(&stream->context_, stream.get());
  // Writes come from the loop, outside of gRPC's callbacks. Without a hold, OnDone could arrive
  // during a write.
  stream->AddHold();
  stream->StartRead(&stream->incoming_);
  stream->StartCall();
  return stream;
}

void ControlStream::send(v1::ConnectRequest request, bool behind_heartbeat) {
  loop_.assert_on();
  if (ended_) return;
  make_sendable(request);
  if (behind_heartbeat && heartbeat_) {
    queue_.push_back(std::move(*heartbeat_));
    heartbeat_.reset();
  }
  queue_.push_back(std::move(request));
  write_next();
}

void ControlStream::send_heartbeat(v1::ConnectRequest heartbeat) {
  loop_.assert_on();
  if (ended_) return;
  make_sendable(heartbeat);
  heartbeat_ = std::move(heartbeat);
  write_next();
}

void ControlStream::write_next() {
  loop_.assert_on();
  if (writing_ || ended_) return;
  if (!queue_.empty()) {
    outgoing_ = std::move(queue_.front());
    queue_.pop_front();
  } else if (heartbeat_) {
    outgoing_ = std::move(*heartbeat_);
    heartbeat_.reset();
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&outgoing_);
}

void ControlStream::close() {
  loop_.assert_on();
  context_.TryCancel();
}

void ControlStream::received(v1::ConnectResponse message) {
  loop_.assert_on();
  if (!ended_ && handlers_.on_message) handlers_.on_message(std::move(message));
}

void ControlStream::wrote(bool ok) {
  loop_.assert_on();
  writing_ = false;
  if (ok) write_next();  // else the read reports how the stream ended
}

void ControlStream::ended() {
  loop_.assert_on();
  if (ended_) return;
  ended_ = true;
  RemoveHold();
}

void ControlStream::done(const grpc::Status& status) {
  loop_.assert_on();
  ended_ = true;
  const auto handlers = std::exchange(handlers_, {});
  if (handlers.on_done) handlers.on_done(status);
}

void ControlStream::OnReadDone(bool ok) {
  if (!ok) {
    loop_.post("stream ended", [self = shared_from_this()] { self->ended(); });
    return;
  }
  loop_.post("stream message",
             [self = shared_from_this(), message = std::move(incoming_)]() mutable {
               self->received(std::move(message));
             });
  incoming_.Clear();
  StartRead(&incoming_);
}

void ControlStream::OnWriteDone(bool ok) {
  loop_.post("stream wrote", [self = shared_from_this(), ok] { self->wrote(ok); });
}

void ControlStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<ControlStream> self = std::move(self_);
  async::Gate& gate = gate_;
  loop_.post("stream done", [self = std::move(self), status] { self->done(status); });
  gate.leave();
}

}  // namespace muster::agent
