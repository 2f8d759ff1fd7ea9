#include "agent/core/reconcile.h"

#include <fmt/format.h>

#include <set>

#include "agent/core/run_phase.h"

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

// Why a run that nobody claimed never starts.
const char* gone_text(RunPhase phase, bool starting_up) {
  if (phase == RunPhase::Refusing) return "the agent was restarted while it refused the run";
  return starting_up ? "the agent was restarted before the worker had claimed the run"
                     : "the worker ended before it had claimed the run";
}

// `want` is what is ordered; WANT_NOT_SET also if nothing is, or if unsupported() reports it.
std::optional<Action> next_action(const Self& self, const RunKey& run, const RunSeen& seen,
                                  v1::Order::WantCase want, bool starting_up) {
  const RunPhase phase = phase_of(seen, self.boot_id);
  const RunRule& rule = rule_of(phase);
  const RunDeed deed = want == v1::Order::kStop     ? rule.on_stop
                       : want == v1::Order::kForget ? rule.on_forget
                                                    : rule.always;
  switch (deed) {
    case RunDeed::Nothing: return std::nullopt;
    case RunDeed::Refuse: return refuse(run, v1::START_FAILURE_GONE, gone_text(phase, starting_up));
    case RunDeed::RefuseStopped: return refuse_stopped(run);
    case RunDeed::Stop: return SignalStop{.run = run};
    case RunDeed::Sweep: return SweepRun{.run = run, .why = rule.why};
    case RunDeed::MarkSwept: return MarkSwept{.run = run, .why = rule.why};
    case RunDeed::Forget: return ForgetRun{.run = run};
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
    const v1::Order::WantCase want =
        order == ordered.end() ? v1::Order::WANT_NOT_SET : order->second->want_case();
    if (std::optional<Action> action = next_action(self, run, state, want, starting_up))
      actions.push_back(*std::move(action));
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
