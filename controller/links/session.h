// One agent's Connect stream, on the controller's side. It keeps itself until gRPC calls OnDone,
// and the Hub shares it. It is thread-safe, and called on gRPC's threads and on the shell's strand.
//
// There is one outstanding read and one outstanding write; gRPC's callbacks convert, pass on, and
// return.
//
// What is written, and in which order: core::SendQueue.
//
// Facts that were read and are not answered yet have a bound. Beyond it, the session does not read
// from the agent, so that gRPC's flow control holds it back.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/rpc/tls_port.h"
#include "controller/access/revocations.h"
#include "controller/core/send_queue.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class Session;
using SessionPtr = std::shared_ptr<Session>;

// Called on gRPC's threads. For one session, on_hello is called first and once, and on_gone last
// and once.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) = 0;
  virtual void on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) = 0;
  virtual void on_heartbeat(const SessionPtr& session, v1::Heartbeat heartbeat, Now arrived) = 0;
  virtual void on_unsupported(const SessionPtr& session, v1::Unsupported unsupported) = 0;
  virtual void on_gone(const SessionPtr& session, Now at) = 0;
};

// The approximate memory that facts use until they are durable.
[[nodiscard]] std::size_t waiting_cost(const v1::Facts& facts);

class Session final : public grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>,
                      public std::enable_shared_from_this<Session> {
 public:
  static constexpr std::size_t kFactsWaitingMost = 64 << 20;
  // Accepted from one stream: each becomes a line in the log.
  static constexpr int kUnsupportedMost = 1'000;
  // Begins to read. gRPC calls the returned reactor until OnDone.
  static grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* begin(
      SessionOwner& owner, const Clock& clock, const grpc::CallbackServerContext& context,
      Revocations::Stay stay = {});

  Session(SessionOwner& owner, const Clock& clock, const grpc::CallbackServerContext& context,
          Revocations::Stay stay)
      : owner_(owner),
        clock_(clock),
        peer_(context.peer()),
        caller_(rpc::caller_of(context)),
        stay_(std::move(stay)) {}

  // The hub's decision about the Hello. Facts and heartbeats before it end the stream. An agent may
  // end its half of the stream right after its Hello. It still gets its answer, which is the
  // Welcome or the status with the reason, and then the end.
  void accept(ConnectionId connection, v1::Welcome welcome);
  void refuse(grpc::Status status);  // ends the stream, after the write in progress
  void send(core::NodeOrders orders);
  // All of them are written, in order. Returns false if too many wait already.
  [[nodiscard]] bool want(v1::FilesWanted files);
  [[nodiscard]] bool want(v1::StoreCheck check);
  void trust(v1::Authorities authorities);  // the latest is enough
  // The facts are decided and durable, or left to the next controller: they do not wait here any
  // more.
  void facts_taken(std::size_t cost);
  void ack(v1::FactAck ack);
  void ack(v1::HeartbeatAck ack);

  [[nodiscard]] const std::string& peer() const { return peer_; }
  [[nodiscard]] const rpc::Caller& caller() const { return caller_; }
  // Set by the Hello, and unchanged after it.
  [[nodiscard]] const NodeName& node() const { return node_; }
  [[nodiscard]] const InstanceId& instance() const { return instance_; }
  [[nodiscard]] ConnectionId connection() const;  // 0: not accepted
  // Once true, on_gone was called or is being called.
  [[nodiscard]] bool is_gone() const;
  [[nodiscard]] bool half_closed() const;  // the agent has ended its half of the stream

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  bool hand_over(Now arrived);  // false: the stream is being refused
  template <class Message>
  void put(Message message);
  template <class Message>
  bool put_bounded(Message message);
  void write_next() MUSTER_REQUIRES(mutex_);
  void gone();

  SessionOwner& owner_;
  const Clock& clock_;
  const std::string peer_;
  const rpc::Caller caller_;
  Revocations::Stay stay_;  // until OnDone
  NodeName node_;
  InstanceId instance_;
  bool hello_received_ = false;  // used only by reads, as is the next
  int unsupported_ = 0;
  v1::ConnectRequest incoming_;
  SessionPtr self_;

  mutable Mutex mutex_;
  ConnectionId connection_ MUSTER_GUARDED_BY(mutex_);
  core::SendQueue queue_ MUSTER_GUARDED_BY(mutex_);
  v1::ConnectResponse outgoing_ MUSTER_GUARDED_BY(mutex_);
  bool writing_ MUSTER_GUARDED_BY(mutex_) = false;
  bool finished_ MUSTER_GUARDED_BY(mutex_) = false;
  bool gone_notified_ MUSTER_GUARDED_BY(mutex_) = false;
  std::size_t facts_waiting_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool reading_paused_ MUSTER_GUARDED_BY(mutex_) = false;  // no read is outstanding
  bool asked_ MUSTER_GUARDED_BY(mutex_) = false;           // the Hello was passed to the hub
  bool decided_ MUSTER_GUARDED_BY(mutex_) = false;         // the hub has answered
  bool half_closed_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> ending_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
