// One agent's stream. gRPC's side: one read and one write outstanding, callbacks that convert, hand over and return. What waits to be written is one slot a
// kind, latest wins (orders are state; an acknowledgement covers all before it), so a slow agent costs no memory.
//
// Thread-safe. Lives until OnDone: it holds itself, the hub shares it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <optional>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class Session;
using SessionPtr = std::shared_ptr<Session>;

// Called on gRPC's threads. For one session: hello first and once, gone last and once.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) = 0;
  virtual void on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) = 0;
  virtual void on_pulse(const SessionPtr& session, v1::Pulse pulse, Now arrived) = 0;
  virtual void on_gone(const SessionPtr& session, Now at) = 0;
};

class Session final : public grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>, public std::enable_shared_from_this<Session> {
 public:
  // Begins to read. The returned reactor is gRPC's to call until OnDone.
  static grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* begin(SessionOwner& owner, const Clock& clock, std::string peer);

  Session(SessionOwner& owner, const Clock& clock, std::string peer) : owner_(owner), clock_(clock), peer_(std::move(peer)) {}

  // The hub's decision about the Hello. Facts and pulses before it end the stream.
  void accept(ConnectionId connection, v1::Welcome welcome);
  void refuse(grpc::Status status);  // ends the stream, after what is being written
  void send(v1::Orders orders);
  void ack(v1::FactAck ack);
  void ack(v1::PulseAck ack);

  [[nodiscard]] const std::string& peer() const { return peer_; }
  // After hello, unchanged.
  [[nodiscard]] const NodeName& node() const { return node_; }
  [[nodiscard]] const InstanceId& instance() const { return instance_; }
  [[nodiscard]] ConnectionId connection() const;  // 0: not accepted
  [[nodiscard]] bool is_gone() const;             // once true, on_gone was or is being called

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  bool hand_over(Now arrived);  // false: the stream is being refused
  void write_next();            // mutex_ held
  void gone();

  SessionOwner& owner_;
  const Clock& clock_;
  const std::string peer_;
  NodeName node_;
  InstanceId instance_;
  bool said_hello_ = false;  // reads only
  v1::ConnectRequest incoming_;
  SessionPtr self_;

  mutable std::mutex mutex_;  // guards everything below
  ConnectionId connection_;
  std::optional<v1::Welcome> welcome_;
  std::optional<v1::Orders> orders_;
  std::optional<v1::FactAck> fact_ack_;
  std::optional<v1::PulseAck> pulse_ack_;
  v1::ConnectResponse outgoing_;
  bool writing_ = false, finished_ = false, told_gone_ = false;
  std::optional<grpc::Status> ending_;
};

}  // namespace muster::controller
