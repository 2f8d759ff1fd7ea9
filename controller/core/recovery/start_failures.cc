#include "controller/core/recovery/start_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <vector>

#include "common/engine/model/engine.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/pause.h"

namespace muster::core {
namespace {

constexpr std::size_t kStartsNamed = 10;

// Whether muster chose the port. Only rank 0's node uses a port that a spec may fix.
bool is_own_port(const JobRecord& job, const AttemptRecord& attempt,
                 const NodeStartFailed& failure) {
  return failure.why == StartFailure::Port && (job.spec.network().master_port() == 0 ||
                                               failure.node != attempt.parts.front().placed.node);
}

// Whether an immediate new attempt would most likely fail on this node again.
bool lasts(const JobRecord& job, const AttemptRecord& attempt, const NodeStartFailed& failure) {
  switch (failure.why) {
    case StartFailure::Disk:
    case StartFailure::Node: return true;
    case StartFailure::Port: return !is_own_port(job, attempt, failure);
    case StartFailure::Launch: return has_run(job);
    case StartFailure::Checkpoint:
      return !found_newer(failure) && !(attempt.resume && is_quarantined(job, *attempt.resume));
    case StartFailure::Gone:
    case StartFailure::Inputs:
    case StartFailure::InputsChanged: return false;
  }
  return false;
}

struct Failures {
  WallTime last{};
  std::uint32_t count = 0;
};

}  // namespace

bool has_run(const JobRecord& job) {
  return std::ranges::any_of(job.attempts, [](const AttemptRecord& one) {
    return !one.parts.empty() && one.parts_started == one.parts.size();
  });
}
bool is_jobs_own(StartFailure why, const JobRecord& job) {
  return why == StartFailure::Launch && !has_run(job);
}
bool is_nodes_own(StartFailure why) {
  return why == StartFailure::Gone || why == StartFailure::Disk || why == StartFailure::Node;
}

bool found_newer(const NodeStartFailed& failure) {
  return failure.why == StartFailure::Checkpoint && failure.needed == 0;
}

const NodeStartFailed* first_start_failure(const AttemptRecord& attempt) {
  const NodeStartFailed* first = nullptr;
  for (const NodePart& part : attempt.parts) {
    if (part.start_failed &&
        (first == nullptr || part.start_failed->controller_time < first->controller_time))
      first = &*part.start_failed;
  }
  return first;
}

std::uint32_t lost_to_ports(const JobRecord& job, const AttemptRecord& attempt) {
  std::uint32_t count = 0;
  for (const AttemptRecord& one : job.attempts | std::views::reverse) {
    if (one.number > attempt.number) continue;
    const NodeStartFailed* failure = first_start_failure(one);
    if (failure == nullptr || !is_own_port(job, one, *failure)) break;
    ++count;
  }
  return count;
}

std::string ports_tried(const JobRecord& job, const AttemptRecord& attempt) {
  const std::uint32_t count = lost_to_ports(job, attempt);
  std::vector<std::string> starts;
  for (const AttemptRecord& one : job.attempts | std::views::reverse) {
    if (one.number > attempt.number) continue;
    if (starts.size() == std::min<std::size_t>(count, kStartsNamed)) break;
    const NodePart& part = *one.part(first_start_failure(one)->node);
    std::vector<std::string> ports;
    if (&part == &one.parts.front()) ports.push_back(std::to_string(one.master_port));
    if (const std::uint32_t first = part.placed.hccl_port; first != 0)
      ports.push_back(fmt::format("{}-{}", first, first + engine::kHcclPorts - 1));
    starts.push_back(ports.empty() ? "?" : fmt::format("{}", fmt::join(ports, " or ")));
  }
  std::ranges::reverse(starts);
  return fmt::format("{}{}", count > kStartsNamed ? "... " : "", fmt::join(starts, ", "));
}

std::map<NodeName, AvoidedNode> avoided_nodes(const JobRecord& job, Now now, const Limits& limits) {
  std::map<NodeName, AvoidedNode> avoided;
  std::map<NodeName, Failures> failures;
  for (const AttemptRecord& attempt : job.attempts | std::views::reverse) {
    bool failed = false;
    for (const NodePart& part : attempt.parts) {
      if (!attempt.ended_at || !part.start_failed || !lasts(job, attempt, *part.start_failed))
        continue;
      failed = true;
      Failures& known = failures[part.placed.node];
      if (known.count++ > 0) continue;
      known.last = *attempt.ended_at;
      avoided[part.placed.node] = {
          .attempt = attempt.number, .why = part.start_failed->why, .retry_at = std::nullopt};
    }
    if (!failed) break;
  }
  for (auto& [node, one] : avoided) {
    const Failures& known = failures.at(node);
    one.retry_at = pause_end(
        known.last, doubled_pause(limits.start_pause, known.count, limits.start_pause_max), now);
  }
  return avoided;
}

}  // namespace muster::core
