#include "controller/links/order_book.h"

#include <set>

#include "common/log/log.h"
#include "controller/launch/launch.h"
#include "controller/shell/event_fields.h"

namespace muster::controller {

const v1::NodeLaunch* OrderBook::launch(const core::Ledger& ledger, const NodeName& node, const core::Assignment& wanted) {
  auto [entry, fresh] = launches_.try_emplace({wanted.job, wanted.attempt});
  if (fresh) {
    const core::JobRecord& job = ledger.jobs.at(wanted.job);
    const core::AttemptRecord* attempt = job.attempt(wanted.attempt);
    auto made = node_launches(job, *attempt, ledger, cluster_out_);
    // The spec was planned when it was submitted, so this is ours; the attempt breaks at its start time-out, with this line in the log.
    if (!made) log::error("an attempt cannot be launched", {{"job", wanted.job.str()}, {"attempt", wanted.attempt.value}, {"why", made.error().message}});
    for (std::size_t i = 0; made && i < made->size(); ++i) entry->second.emplace(attempt->parts[i].placed.node, std::move((*made)[i]));
  }
  const auto found = entry->second.find(node);
  return found == entry->second.end() ? nullptr : &found->second;
}

v1::Orders OrderBook::orders(const core::Ledger& ledger, const NodeName& node, const std::vector<core::Assignment>& wanted) {
  v1::Orders orders;
  orders.set_epoch(ledger.epoch.value);
  orders.set_cluster_id(ledger.cluster.str());
  for (const core::Assignment& assignment : wanted) {
    v1::Order order;
    order.set_job_id(assignment.job.str());
    order.set_attempt(assignment.attempt.value);
    switch (assignment.want) {
      case core::Want::Run: {
        const v1::NodeLaunch* found = launch(ledger, node, assignment);
        if (found == nullptr) continue;
        *order.mutable_run() = *found;
        break;
      }
      case core::Want::Stop: {
        order.mutable_stop();
        if (const auto job = ledger.jobs.find(assignment.job); job != ledger.jobs.end()) {
          *order.mutable_stop()->mutable_grace() = job->second.spec.recovery().stop_grace();
        }
        break;
      }
      case core::Want::Forget: order.mutable_forget(); break;
    }
    *orders.add_orders() = std::move(order);
  }
  return orders;
}

std::vector<NodeName> touched_nodes(std::span<const journal::Row> rows, const core::Ledger& ledger) {
  std::set<NodeName> nodes;
  for (const journal::Row& row : rows) {
    const core::EventBody& body = row.event.body;
    if (const NodeName* node = node_of(body)) nodes.insert(*node);
    // Facts of one node change that node's orders alone; everything else about a job may change those of all its nodes.
    if (node_of(body) != nullptr) continue;
    const JobId* id = job_of(body);
    if (id == nullptr) continue;
    const auto job = ledger.jobs.find(*id);
    if (job == ledger.jobs.end()) continue;
    for (const core::AttemptRecord& attempt : job->second.attempts) {
      for (const core::NodePart& part : attempt.parts) nodes.insert(part.placed.node);
    }
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace muster::controller
