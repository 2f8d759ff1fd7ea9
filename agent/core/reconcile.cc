#include "agent/core/reconcile.h"

#include <fmt/format.h>

#include <set>

namespace muster::agent {
namespace {

RunKey key_of(const v1::Order& order) {
  return {JobId(order.job_id()), AttemptNo(order.attempt())};
}

RefuseRun refuse(const RunKey& run, v1::StartFailure why, std::string text) {
  return {.run = run, .why = why, .text = std::move(text)};
}

RefuseRun refuse_stopped(const RunKey& run) {
  return refuse(run, v1::START_FAILURE_UNSPECIFIED, "asked to stop before it was started");
}

// Returns the action that the run directory alone requires, whatever the controller wants. Empty
// result: the orders decide.
std::optional<Action> proof_needed(const Self& self, const RunKey& run, const RunSeen& seen,
                                   bool stop_ordered, bool starting_up) {
  if (seen.swept) return std::nullopt;
  // No process survives its boot. There is nothing to search for, and the recorded pids may belong
  // to other processes now.
  if (!seen.boot_id.empty() && seen.boot_id != self.boot_id)
    return MarkSwept{.run = run, .why = v1::SWEPT_WHY_REBOOTED};
  switch (seen.worker) {
    case WorkerState::None:
      // The worker, or an agent that refused the run, had the claim, and the claim is lost. The run
      // is treated like one whose worker cannot be found.
      if (seen.worker_spoke || seen.refused)
        return SweepRun{.run = run, .why = v1::SWEPT_WHY_CLAIM_LOST};
      // The agent crashed between the directory and the claim, or a worker died before its claim.
      // The claim decides. If the agent gets it, nothing ever ran here. If a worker was quicker,
      // the next reading of the directory finds it alive and adopts it. There is never a second
      // spawn.
      if (stop_ordered) return refuse_stopped(run);
      return refuse(run, v1::START_FAILURE_GONE,
                    starting_up ? "the agent was restarted before the worker had claimed the run"
                                : "the worker ended before it had claimed the run");
    case WorkerState::Spawned:
    case WorkerState::Alive: return std::nullopt;
    case WorkerState::Dead: return SweepRun{.run = run, .why = v1::SWEPT_WHY_WORKER_DIED};
    case WorkerState::Never:
      // Claimed by an agent that died before it could record why.
      if (!seen.refused) {
        return stop_ordered ? refuse_stopped(run)
                            : refuse(run, v1::START_FAILURE_GONE,
                                     "the agent was restarted while it refused the run");
      }
      // An earlier claim, or the whole directory, may be lost while the processes still live. So
      // search for them.
      return SweepRun{.run = run, .why = v1::SWEPT_WHY_NEVER_STARTED};
  }
  return std::nullopt;
}

std::optional<Action> ordered_unseen(const Self& self, const RunKey& run, const v1::Order& order) {
  switch (order.want_case()) {
    case v1::Order::kRun: {
      const v1::NodeLaunch& launch = order.run();
      if (launch.boot_id() != self.boot_id.str()) {
        return refuse(run, v1::START_FAILURE_GONE,
                      fmt::format("placed on boot '{}' of this node, which has been restarted "
                                  "since: it is boot '{}' now",
                                  launch.boot_id(), self.boot_id.str()));
      }
      if (launch.instance() != self.instance.str()) {
        return refuse(run, v1::START_FAILURE_GONE,
                      fmt::format("placed on agent instance '{}', whose state directory is no "
                                  "longer here: it is instance '{}' now",
                                  launch.instance(), self.instance.str()));
      }
      return StartRun{.run = run, .launch = launch};
    }
    case v1::Order::kStop: return refuse_stopped(run);
    case v1::Order::kForget: return std::nullopt;
    case v1::Order::WANT_NOT_SET:
      return refuse(run, v1::START_FAILURE_LAUNCH,
                    "unsupported: the controller's order is of a kind that this agent does not "
                    "know; upgrade the agent");
  }
  return std::nullopt;
}

std::optional<Action> ordered_seen(const RunKey& run, const RunSeen& seen, const v1::Order& order) {
  switch (order.want_case()) {
    // start once: the state of this directory is the answer
    case v1::Order::kRun: return std::nullopt;
    case v1::Order::kStop:
      if (seen.swept || seen.stop_requested) return std::nullopt;
      if (seen.worker == WorkerState::Alive) return SignalStop{.run = run};
      // Spawned: a race for the claim is safer than a signal that may arrive before the worker's
      // signal handler exists. A worker that was quicker is adopted.
      if (seen.worker == WorkerState::Spawned) return refuse_stopped(run);
      return std::nullopt;
    case v1::Order::kForget:
      // Never under a living worker: its last records would go to a removed directory.
      if (seen.swept && seen.worker != WorkerState::Alive && seen.worker != WorkerState::Spawned)
        return ForgetRun{.run = run};
      return std::nullopt;
    case v1::Order::WANT_NOT_SET: return std::nullopt;  // unsupported() reports it
  }
  return std::nullopt;
}

}  // namespace

v1::Orders merged(v1::Orders earlier, v1::Orders next, const std::map<RunKey, RunSeen>& seen) {
  std::set<RunKey> mentioned;
  for (const v1::Order& order : next.orders()) mentioned.insert(key_of(order));
  for (v1::Order& order : *earlier.mutable_orders()) {
    const RunKey run = key_of(order);
    if (order.has_run() && !mentioned.contains(run) && !seen.contains(run))
      *next.add_orders() = std::move(order);
  }
  return next;
}

std::vector<RunKey> unsupported(const v1::Orders& orders) {
  std::set<RunKey> unknown;
  for (const v1::Order& order : orders.orders()) {
    if (order.want_case() == v1::Order::WANT_NOT_SET) unknown.insert(key_of(order));
  }
  return {unknown.begin(), unknown.end()};
}

std::vector<Action> reconcile(const Self& self, const v1::Orders* orders,
                              const std::map<RunKey, RunSeen>& seen, bool starting_up) {
  std::map<RunKey, const v1::Order*> ordered;
  if (orders != nullptr) {
    for (const v1::Order& order : orders->orders()) ordered[key_of(order)] = &order;
  }
  std::vector<Action> actions;
  for (const auto& [run, state] : seen) {
    const auto order = ordered.find(run);
    const bool stop_ordered = order != ordered.end() && order->second->has_stop();
    std::optional<Action> action = proof_needed(self, run, state, stop_ordered, starting_up);
    if (!action && order != ordered.end()) action = ordered_seen(run, state, *order->second);
    if (action) actions.push_back(*std::move(action));
  }
  // Starts come last, so that actions that free resources come before actions that need them.
  for (const auto& [run, order] : ordered) {
    if (seen.contains(run)) continue;
    if (std::optional<Action> action = ordered_unseen(self, run, *order))
      actions.push_back(*std::move(action));
  }
  return actions;
}

}  // namespace muster::agent
