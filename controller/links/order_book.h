// What each node is told, made from core::desired. Shell's strand only. A launch is planned when it
// is to be said, for one node at a time; what all parts of an attempt have in common is kept while
// the attempt is wanted.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/engine/engine.h"
#include "controller/shell/view.h"

namespace muster::controller {

class OrderBook {
 public:
  explicit OrderBook(std::string cluster_out) : cluster_out_(std::move(cluster_out)) {}

  // What is to be stopped and forgotten: small, and whole.
  static v1::Orders standing(const core::Ledger& ledger,
                             const std::vector<core::Assignment>& wanted);
  // The order to run one of the node's parts. Errors: it cannot be planned, or not be sent.
  Result<v1::Order> run(const core::Ledger& ledger, const NodeName& node,
                        const core::Assignment& wanted);
  // The attempt has ended: its launches are not needed again.
  void drop(const JobId& job, AttemptNo attempt) { requests_.erase({job, attempt}); }

 private:
  std::string cluster_out_;
  std::map<core::AttemptKey, engine::LaunchRequest> requests_;
};

// Nodes whose orders may differ after these rows.
std::vector<NodeName> touched_nodes(std::span<const journal::Row> rows, const core::Ledger& ledger);

}  // namespace muster::controller
