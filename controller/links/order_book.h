// Makes the orders to run that core::Peers names. The Hub owns it. It runs only on the shell's
// strand.
//
// A launch is planned right before it is sent, for one node at a time. What all parts of an attempt
// have in common is kept while the attempt is wanted.
#pragma once

#include <map>
#include <string>

#include "common/engine/model/engine.h"
#include "controller/shell/view.h"

namespace muster::controller {

class OrderBook {
 public:
  explicit OrderBook(std::string cluster_out) : cluster_out_(std::move(cluster_out)) {}

  // The order to run one of the node's parts. An error means that it cannot be planned, or cannot
  // be sent.
  Result<v1::Order> run(const core::Ledger& ledger, const NodeName& node,
                        const core::Assignment& wanted);
  // Call this when the attempt has ended: its launches are not needed again.
  void drop(const JobId& job, AttemptNo attempt) { requests_.erase({job, attempt}); }

 private:
  std::string cluster_out_;
  std::map<core::AttemptKey, engine::LaunchRequest> requests_;
};

}  // namespace muster::controller
