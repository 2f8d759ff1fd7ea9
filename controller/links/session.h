// One agent's stream. gRPC's side: one read and one write outstanding, callbacks that convert, hand
// over and return. What waits to be written is one slot a kind, latest wins (orders are state; an
// acknowledgement covers all before it), so a slow agent costs no memory. Launches, which are
// large, wait one by one until they are written or no longer wanted: as many as the node has room
// to run.
//
// Written in this order: Welcome; what is to be stopped, at once and by itself; launches, each in a
// message with the stops again, and acknowledgements, by turns.
//
// Facts that were read and are not answered yet have a bound: beyond it the agent is not read from,
// so that gRPC's flow control holds it back.
//
// Thread-safe. Lives until OnDone: it holds itself, the hub shares it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class Session;
using SessionPtr = std::shared_ptr<Session>;

struct NodeOrders {
  v1::Orders standing;          // every Stop and Forget
  std::vector<v1::Order> runs;  // new on this stream
  // all that are to run; of earlier `runs`, the others are not written any more
  std::set<std::pair<JobId, AttemptNo>> running;
};

// Called on gRPC's threads. For one session: hello first and once, gone last and once.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) = 0;
  virtual void on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) = 0;
  virtual void on_heartbeat(const SessionPtr& session, v1::Heartbeat heartbeat, Now arrived) = 0;
  virtual void on_unsupported(const SessionPtr& session, v1::Unsupported unsupported) = 0;
  virtual void on_gone(const SessionPtr& session, Now at) = 0;
};

// What facts cost in memory until they are durable, about.
[[nodiscard]] std::size_t waiting_cost(const v1::Facts& facts);

class Session final : public grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>,
                      public std::enable_shared_from_this<Session> {
 public:
  static constexpr std::size_t kFactsWaitingMost = 64 << 20;
  static constexpr int kUnsupportedMost = 1'000;  // heard of one stream: each is a line in the log
  // Begins to read. The returned reactor is gRPC's to call until OnDone.
  static grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* begin(
      SessionOwner& owner, const Clock& clock, std::string peer);

  Session(SessionOwner& owner, const Clock& clock, std::string peer)
      : owner_(owner), clock_(clock), peer_(std::move(peer)) {}

  // The hub's decision about the Hello. Facts and heartbeats before it end the stream. An agent
  // that
  // ends its half right behind its Hello gets its answer all the same, the Welcome or the status
  // that says why not, and then the end.
  void accept(ConnectionId connection, v1::Welcome welcome);
  void refuse(grpc::Status status);  // ends the stream, after what is being written
  void send(NodeOrders orders);
  void want(v1::FilesWanted files);  // every one of them, in order
  // they are decided and durable, or left to the next controller: no longer held here
  void facts_taken(std::size_t cost);
  void ack(v1::FactAck ack);
  void ack(v1::HeartbeatAck ack);

  [[nodiscard]] const std::string& peer() const { return peer_; }
  // After hello, unchanged.
  [[nodiscard]] const NodeName& node() const { return node_; }
  [[nodiscard]] const InstanceId& instance() const { return instance_; }
  [[nodiscard]] ConnectionId connection() const;  // 0: not accepted
  [[nodiscard]] bool is_gone() const;             // once true, on_gone was or is being called
  [[nodiscard]] bool half_closed() const;         // the agent has ended its half of the stream

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  bool hand_over(Now arrived);  // false: the stream is being refused
  void write_next();            // mutex_ held
  bool next_message();          // into outgoing_, mutex_ held; false: nothing waits
  void gone();

  SessionOwner& owner_;
  const Clock& clock_;
  const std::string peer_;
  NodeName node_;
  InstanceId instance_;
  bool hello_received_ = false;  // reads only, as the next
  int unsupported_ = 0;
  v1::ConnectRequest incoming_;
  SessionPtr self_;

  mutable std::mutex mutex_;  // guards everything below
  ConnectionId connection_;
  std::optional<v1::Welcome> welcome_;
  v1::Orders standing_;
  bool say_standing_ = false;
  std::deque<v1::Order> runs_;  // not written yet
  std::deque<v1::FilesWanted> files_;
  bool acks_turn_ = false;  // a launch was written last
  std::optional<v1::FactAck> fact_ack_;
  std::optional<v1::HeartbeatAck> heartbeat_ack_;
  v1::ConnectResponse outgoing_;
  bool writing_ = false, finished_ = false, gone_notified_ = false;
  std::size_t facts_waiting_ = 0;
  bool reading_paused_ = false;           // no read is outstanding
  bool asked_ = false, decided_ = false;  // Hello was handed to the hub; it has answered
  bool half_closed_ = false;
  std::optional<grpc::Status> ending_;
};

}  // namespace muster::controller
