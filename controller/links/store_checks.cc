#include "controller/links/store_checks.h"

#include <algorithm>
#include <utility>

#include "common/base/random_hex.h"

namespace muster::controller {

std::vector<StoreChecks::Check> StoreChecks::take_all(
    const std::function<bool(const Check&)>& is_it) {
  std::vector<Check> taken;
  for (auto at = open_.begin(); at != open_.end();) {
    if (!is_it(at->second)) {
      ++at;
      continue;
    }
    taken.push_back(std::move(at->second));
    at = open_.erase(at);
  }
  return taken;
}

Result<std::string> StoreChecks::open(const NodeName& node, const InstanceId& instance,
                                      const std::string& user, BootTime now, Done done) {
  auto ticket = random_hex(16, "checking a store");
  if (!ticket) return ticket;
  std::vector<Check> late;
  std::optional<Error> refusal;
  {
    const MutexLock lock(mutex_);
    late = take_all([&](const Check& one) { return now - one.since > kLongest; });
    const auto of_user = static_cast<std::size_t>(
        std::ranges::count_if(open_, [&](const auto& entry) { return entry.second.user == user; }));
    if (of_user >= kOfUserMost)
      refusal = Error{ErrorCode::ResourceExhausted,
                      "checking a store: " + std::to_string(kOfUserMost) +
                          " checks of yours are under way, which is the bound; wait for one"};
    else if (open_.size() >= kMost)
      refusal = Error{ErrorCode::ResourceExhausted,
                      "checking a store: " + std::to_string(kMost) +
                          " checks are under way, which is the bound; try again in a minute"};
    else
      open_.emplace(*ticket, Check{.node = node,
                                   .instance = instance,
                                   .user = user,
                                   .since = now,
                                   .done = std::move(done)});
  }
  for (Check& one : late)
    one.done(fail(ErrorCode::Unsatisfiable,
                  "checking a store: node '" + one.node.str() + "' has not answered"));
  if (refusal) return fail(*std::move(refusal));
  return ticket;
}

Result<void> StoreChecks::report(v1::ReportStoreRequest report) {
  Done done;
  {
    const MutexLock lock(mutex_);
    const auto found = open_.find(report.ticket());
    if (found == open_.end() || found->second.node != NodeName(report.node()) ||
        found->second.instance != InstanceId(report.instance()))
      return fail(ErrorCode::NotFound, "reporting a store: nobody waits for it");
    done = std::move(found->second.done);
    open_.erase(found);
  }
  done(std::move(report));
  return {};
}

void StoreChecks::drop(const std::string& ticket) {
  const MutexLock lock(mutex_);
  open_.erase(ticket);
}

void StoreChecks::node_gone(const NodeName& node) {
  std::vector<Check> gone;
  {
    const MutexLock lock(mutex_);
    gone = take_all([&](const Check& one) { return one.node == node; });
  }
  for (Check& one : gone)
    one.done(fail(ErrorCode::Unsatisfiable,
                  "checking a store: node '" + node.str() + "' has gone before it answered"));
}

std::size_t StoreChecks::count_of(const NodeName& node) {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(open_, [&](const auto& entry) { return entry.second.node == node; }));
}

}  // namespace muster::controller
