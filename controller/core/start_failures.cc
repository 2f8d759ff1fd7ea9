#include "controller/core/start_failures.h"

#include <algorithm>
#include <ranges>

namespace muster::core {
namespace {

// Another attempt at once would most likely meet it again on this node.
bool lasts(StartFailure why, const JobRecord& job) {
  switch (why) {
    case StartFailure::Disk:
    case StartFailure::Node: return true;
    case StartFailure::Port: return job.spec.network().master_port() != 0;
    case StartFailure::Launch: return has_run(job);
    case StartFailure::Gone: return false;
  }
  return false;
}

struct Failures {
  WallTime last{};
  std::uint32_t count = 0;
};

Duration pause_after(std::uint32_t count, const Limits& limits) {
  Duration pause = limits.start_pause;
  for (std::uint32_t more = 1; more < count && pause < limits.start_pause_max; ++more) pause *= 2;
  return std::min(pause, limits.start_pause_max);
}

}  // namespace

bool has_run(const JobRecord& job) {
  return std::ranges::any_of(job.attempts, [](const AttemptRecord& one) { return !one.parts.empty() && one.parts_started == one.parts.size(); });
}
bool is_jobs_own(StartFailure why, const JobRecord& job) { return why == StartFailure::Launch && !has_run(job); }
bool is_nodes_own(StartFailure why) { return why == StartFailure::Gone || why == StartFailure::Disk || why == StartFailure::Node; }

std::map<NodeName, AvoidedNode> avoided_nodes(const JobRecord& job, Now now, const Limits& limits) {
  std::map<NodeName, AvoidedNode> avoided;
  std::map<NodeName, Failures> failures;
  for (const AttemptRecord& attempt : job.attempts | std::views::reverse) {
    bool failed = false;
    for (const NodePart& part : attempt.parts) {
      if (!attempt.ended_at || !part.start_failed || !lasts(part.start_failed->why, job)) continue;
      failed = true;
      Failures& known = failures[part.placed.node];
      if (known.count++ > 0) continue;
      known.last = *attempt.ended_at;
      avoided[part.placed.node] = {.attempt = attempt.number, .why = part.start_failed->why, .retry_at = std::nullopt};
    }
    if (!failed) break;
  }
  for (auto& [node, one] : avoided) {
    const Failures& known = failures.at(node);
    // A clock that was set back does not make the pause longer.
    const Duration since = now.wall - known.last, pause = pause_after(known.count, limits);
    if (since >= Duration::zero() && since < pause) one.retry_at = now.boot + (pause - since);
  }
  return avoided;
}

}  // namespace muster::core
