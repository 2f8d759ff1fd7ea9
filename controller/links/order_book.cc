#include "controller/links/order_book.h"

#include "controller/launch/launch.h"

namespace muster::controller {

Result<v1::Order> OrderBook::run(const core::Ledger& ledger, const NodeName& node,
                                 const core::Assignment& wanted) {
  const core::JobRecord& job = ledger.jobs.at(wanted.job);
  const core::AttemptRecord& attempt = *job.attempt(wanted.attempt);
  const auto [entry, fresh] = requests_.try_emplace({wanted.job, wanted.attempt});
  if (fresh) entry->second = launch_request(job, attempt, cluster_out_);
  auto launch = part_launch(job, attempt, entry->second, attempt.part_index.at(node));
  if (!launch) return fail(std::move(launch.error()));
  v1::Order order;
  order.set_job_id(wanted.job.str());
  order.set_attempt(wanted.attempt.value);
  *order.mutable_run() = std::move(*launch);
  return order;
}

}  // namespace muster::controller
