#include "controller/links/store_checks.h"

#include <utility>
#include <vector>

#include "common/base/random_hex.h"

namespace muster::controller {

Result<std::string> StoreChecks::open(const NodeName& node, const InstanceId& instance, Done done) {
  auto ticket = random_hex(16, "checking a store");
  if (!ticket) return ticket;
  const MutexLock lock(mutex_);
  if (open_.size() >= kMost)
    return fail(ErrorCode::ResourceExhausted,
                "checking a store: " + std::to_string(kMost) +
                    " checks are under way, which is the bound; try again in a minute");
  open_.emplace(*ticket, Check{.node = node, .instance = instance, .done = std::move(done)});
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
  std::vector<Done> gone;
  {
    const MutexLock lock(mutex_);
    for (auto at = open_.begin(); at != open_.end();) {
      if (at->second.node != node) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->second.done));
      at = open_.erase(at);
    }
  }
  for (Done& done : gone)
    done(fail(ErrorCode::Unreachable,
              "checking a store: node '" + node.str() + "' has gone before it answered"));
}

}  // namespace muster::controller
