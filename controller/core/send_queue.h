// What one agent is to be sent, and in which order. A session owns it. Pure; not thread-safe.
//
// For each kind of message one slot waits, and the latest message replaces the one before. This is
// correct because orders are state, and an acknowledgement covers all before it. So a slow agent
// costs no memory. Requests for files and checks have a bound. Launches are large; they wait one by
// one until they are taken or are no longer wanted. There are as many as the node has room to run.
//
// The order:
// 1. Welcome;
// 2. the stops, at once and in a message of their own;
// 3. the CAs (Authorities);
// 4. requests for files (FilesWanted), and checks of stores (StoreCheck);
// 5. launches, each in a message with the stops again, and acknowledgements, in turns.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "controller/core/model/ledger.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

struct NodeOrders {
  v1::Orders standing;          // every Stop and Forget
  std::vector<v1::Order> runs;  // new on this stream
  // All parts that are to run. Earlier `runs` that are not in this set are not sent any more.
  std::set<AttemptKey> running;
};

class SendQueue {
 public:
  // An agent that reads has hardly any of them waiting: one for each node of the largest cluster.
  static constexpr std::size_t kFilesMost = 4'096;
  static constexpr std::size_t kChecksMost = 64;

  void put(v1::Welcome welcome) { welcome_ = std::move(welcome); }
  void put(NodeOrders orders);
  // All are sent, in order. Returns false if the agent takes none, so that too many wait already.
  [[nodiscard]] bool put(v1::FilesWanted files);
  [[nodiscard]] bool put(v1::StoreCheck check);
  void put(v1::Authorities authorities) { authorities_ = std::move(authorities); }
  void put(v1::FactAck ack) { fact_ack_ = std::move(ack); }
  void put(v1::HeartbeatAck ack) { heartbeat_ack_ = std::move(ack); }
  // The next message. Nothing: none waits.
  std::optional<v1::ConnectResponse> next();

 private:
  std::optional<v1::Welcome> welcome_;
  v1::Orders standing_;
  bool standing_waits_ = false;
  std::deque<v1::Order> runs_;
  std::optional<v1::Authorities> authorities_;
  std::deque<v1::FilesWanted> files_;
  std::deque<v1::StoreCheck> checks_;
  bool acks_turn_ = false;  // a launch was taken last
  std::optional<v1::FactAck> fact_ack_;
  std::optional<v1::HeartbeatAck> heartbeat_ack_;
};

}  // namespace muster::core
