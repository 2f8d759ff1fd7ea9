#include "controller/links/order_book.h"

#include <set>

#include "controller/launch/launch.h"
#include "controller/shell/event_fields.h"

namespace muster::controller {
namespace {

v1::Order order_of(const core::Assignment& assignment) {
  v1::Order order;
  order.set_job_id(assignment.job.str());
  order.set_attempt(assignment.attempt.value);
  return order;
}

}  // namespace

v1::Orders OrderBook::standing(const core::Ledger& ledger,
                               const std::vector<core::Assignment>& wanted) {
  v1::Orders orders;
  orders.set_epoch(ledger.epoch.value);
  orders.set_cluster_id(ledger.cluster.str());
  for (const core::Assignment& assignment : wanted) {
    v1::Order order = order_of(assignment);
    switch (assignment.want) {
      case core::Want::Run: continue;
      case core::Want::Stop:
        order.mutable_stop();
        if (const auto job = ledger.jobs.find(assignment.job); job != ledger.jobs.end()) {
          *order.mutable_stop()->mutable_grace() = job->second.spec.recovery().stop_grace();
        }
        break;
      case core::Want::Forget: order.mutable_forget(); break;
    }
    *orders.add_orders() = std::move(order);
  }
  return orders;
}

Result<v1::Order> OrderBook::run(const core::Ledger& ledger, const NodeName& node,
                                 const core::Assignment& wanted) {
  const core::JobRecord& job = ledger.jobs.at(wanted.job);
  const core::AttemptRecord& attempt = *job.attempt(wanted.attempt);
  const auto [entry, fresh] = requests_.try_emplace({wanted.job, wanted.attempt});
  if (fresh) entry->second = launch_request(job, attempt, ledger, cluster_out_);
  auto launch = part_launch(job, attempt, entry->second, attempt.part_index.at(node));
  if (!launch) return fail(std::move(launch.error()));
  v1::Order order = order_of(wanted);
  *order.mutable_run() = std::move(*launch);
  return order;
}

std::vector<NodeName> touched_nodes(std::span<const journal::Row> rows,
                                    const core::Ledger& ledger) {
  std::set<NodeName> nodes;
  std::set<JobId> completing;
  for (const journal::Row& row : rows) {
    const core::EventBody& body = row.event.body;
    if (const NodeName* node = node_of(body)) nodes.insert(*node);
    const JobId* id = job_of(body);
    if (id == nullptr) continue;
    const auto job = ledger.jobs.find(*id);
    if (job == ledger.jobs.end()) continue;
    // Facts of one node change only that node's orders, except for the end of the last rank.
    // Everything else about a job may change the orders of all its nodes.
    if (node_of(body) != nullptr) {
      const bool last = std::holds_alternative<core::RankExited>(body) &&
                        job->second.phase == core::JobPhase::Completing;
      if (!last || !completing.insert(*id).second) continue;
    }
    for (const core::AttemptRecord& attempt : job->second.attempts) {
      for (const core::NodePart& part : attempt.parts) nodes.insert(part.placed.node);
    }
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace muster::controller
