// Makes the orders for each node, from core::desired. The Hub owns it. It runs only on the shell's
// strand.
//
// A launch is planned right before it is sent, for one node at a time. What all parts of an attempt
// have in common is kept while the attempt is wanted.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/engine/model/engine.h"
#include "controller/shell/view.h"

namespace muster::controller {

class OrderBook {
 public:
  explicit OrderBook(std::string cluster_out) : cluster_out_(std::move(cluster_out)) {}

  // All orders to stop and to forget. They are small, and each message has all of them.
  static v1::Orders standing(const core::Ledger& ledger,
                             const std::vector<core::Assignment>& wanted);
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

// Nodes whose orders may change because of these rows.
std::vector<NodeName> touched_nodes(std::span<const journal::Row> rows, const core::Ledger& ledger);

}  // namespace muster::controller
