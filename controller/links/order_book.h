// What each node is told, made from core::desired. Shell's strand only. Launches are made once an attempt and kept while the attempt is wanted, so that
// orders sent again are the same bytes' worth and cost no planning.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/shell/view.h"

namespace muster::controller {

class OrderBook {
 public:
  explicit OrderBook(std::string cluster_out) : cluster_out_(std::move(cluster_out)) {}

  v1::Orders orders(const core::Ledger& ledger, const NodeName& node, const std::vector<core::Assignment>& wanted);
  // The attempt has ended: its launches are not needed again.
  void drop(const JobId& job, AttemptNo attempt) { launches_.erase({job, attempt}); }

 private:
  const v1::NodeLaunch* launch(const core::Ledger& ledger, const NodeName& node, const core::Assignment& wanted);

  std::string cluster_out_;
  std::map<std::pair<JobId, AttemptNo>, std::map<NodeName, v1::NodeLaunch>> launches_;
};

// Nodes whose orders may differ after these rows.
std::vector<NodeName> touched_nodes(std::span<const journal::Row> rows, const core::Ledger& ledger);

}  // namespace muster::controller
