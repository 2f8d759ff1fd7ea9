#include "controller/core/send_queue.h"

#include <utility>

namespace muster::core {

void SendQueue::put(NodeOrders orders) {
  standing_ = std::move(orders.standing);
  standing_waits_ = true;
  std::erase_if(runs_, [&](const v1::Order& run) {
    return !orders.running.contains({JobId(run.job_id()), AttemptNo(run.attempt())});
  });
  for (v1::Order& run : orders.runs) runs_.push_back(std::move(run));
}

bool SendQueue::put(v1::FilesWanted files) {
  if (files_.size() >= kFilesMost) return false;
  files_.push_back(std::move(files));
  return true;
}

bool SendQueue::put(v1::StoreCheck check) {
  if (checks_.size() >= kChecksMost) return false;
  checks_.push_back(std::move(check));
  return true;
}

std::optional<v1::ConnectResponse> SendQueue::next() {
  v1::ConnectResponse message;
  if (welcome_) {
    *message.mutable_welcome() = std::move(*std::exchange(welcome_, std::nullopt));
    return message;
  }
  if (standing_waits_ && (runs_.empty() || standing_.orders_size() > 0)) {
    *message.mutable_orders() = standing_;
    standing_waits_ = false;
    return message;
  }
  if (authorities_) {
    *message.mutable_authorities() = std::move(*std::exchange(authorities_, std::nullopt));
    return message;
  }
  if (!files_.empty()) {
    *message.mutable_files_wanted() = std::move(files_.front());
    files_.pop_front();
    return message;
  }
  if (!checks_.empty()) {
    *message.mutable_store_check() = std::move(checks_.front());
    checks_.pop_front();
    return message;
  }
  if (!runs_.empty() && !(acks_turn_ && (fact_ack_ || heartbeat_ack_))) {
    v1::Orders& orders = *message.mutable_orders();
    orders = standing_;
    *orders.add_orders() = std::move(runs_.front());
    runs_.pop_front();
    standing_waits_ = false;
    acks_turn_ = true;
    return message;
  }
  acks_turn_ = false;
  if (fact_ack_) {
    *message.mutable_fact_ack() = std::move(*std::exchange(fact_ack_, std::nullopt));
  } else if (heartbeat_ack_) {
    *message.mutable_heartbeat_ack() = std::move(*std::exchange(heartbeat_ack_, std::nullopt));
  } else {
    return std::nullopt;
  }
  return message;
}

}  // namespace muster::core
