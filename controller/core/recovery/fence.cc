#include "controller/core/recovery/fence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"

namespace muster::core {
namespace {

std::string quoted(const std::vector<std::string>& nodes) {
  return fmt::format("'{}'", fmt::join(nodes, "', '"));
}

// The sentence about a stopped rank. Nothing: no rank is known to be stopped.
std::optional<std::string> stopped_rank(const AttemptRecord& attempt,
                                        const std::vector<PartLiveness>& part_liveness) {
  for (const NodePart& part : attempt.parts) {
    if (!part.exits.empty())
      return fmt::format("rank {} is stopped", part.exits.begin()->first.value);
  }
  for (std::size_t at = 0; at < attempt.parts.size(); ++at) {
    if (!attempt.parts[at].idle() && can_run_nothing(part_liveness[at]))
      return fmt::format("the ranks on node '{}' are stopped", attempt.parts[at].placed.node.str());
  }
  return std::nullopt;
}

}  // namespace

PartCheck check_part(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                     const NodePart& part, Now now, const Limits& limits) {
  if (part.swept || part.idle()) return {.liveness = PartLiveness::Swept};
  return check_contact(ledger, presence, job, part.placed.node, now, limits);
}

PartCheck check_contact(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                        const NodeName& node, Now now, const Limits& limits) {
  if (ledger.indexes.dead_nodes.contains(node)) return {.liveness = PartLiveness::Dead};
  const BootTime silent_at = last_word(presence, node) + limits.silent_after;
  // The agent counts its grace from the sending of a heartbeat that was acknowledged. So it never
  // counts from a later time than the controller, which counts from its acknowledgement. An
  // acknowledgement of an earlier incarnation of this controller was sent before this one listened.
  const auto seen = presence.nodes.find(node);
  const BootTime last_ack = seen == presence.nodes.end() ? BootTime{} : seen->second.last_ack_sent;
  const BootTime grace_end = std::max(last_ack, presence.listening_since) +
                             outlives_contact(job.spec) + limits.grace_margin;
  const BootTime over_at = std::max(silent_at, grace_end);
  if (now.boot < silent_at)
    return {.liveness = PartLiveness::Reachable, .check_at = silent_at, .over_at = over_at};
  if (now.boot < grace_end)
    return {.liveness = PartLiveness::Silent, .check_at = grace_end, .over_at = over_at};
  return {.liveness = PartLiveness::GraceOver};
}

FenceCheck check_fence(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                       const AttemptRecord& attempt, Now now, const Limits& limits) {
  FenceCheck check;
  std::vector<PartLiveness> part_liveness;
  std::vector<std::string> dead, grace_over, silent, reachable;
  for (const NodePart& part : attempt.parts) {
    const PartCheck one = check_part(ledger, presence, job, part, now, limits);
    part_liveness.push_back(one.liveness);
    sooner(check.check_at, one.check_at);
    const std::string& node = part.placed.node.str();
    switch (one.liveness) {
      case PartLiveness::Swept: break;
      case PartLiveness::Dead: dead.push_back(node); break;
      case PartLiveness::GraceOver: grace_over.push_back(node); break;
      case PartLiveness::Silent: silent.push_back(node); break;
      case PartLiveness::Reachable: reachable.push_back(node); break;
    }
  }
  if (silent.empty() && reachable.empty()) {
    check.holds = true;
    check.rule = "swept";
    if (!dead.empty()) check.rule += fmt::format("; declared dead: {}", quoted(dead));
    if (!grace_over.empty())
      check.rule +=
          fmt::format("; silent for longer than the orphan grace: {}", quoted(grace_over));
    return check;
  }
  const std::optional<std::string> stopped = stopped_rank(attempt, part_liveness);
  if (lockstep(job.spec) && reachable.empty() && stopped) {
    // Reports of the nodes about their exits would make the verdict better, so the fence waits a
    // moment for them. A clock that was set back does not make the wait longer.
    const Duration since = attempt.broke_at ? now.wall - *attempt.broke_at : limits.exit_bound;
    if (since >= Duration::zero() && since < limits.exit_bound) {
      check.waits.push_back(fmt::format("the last exits from the silent node{} {}",
                                        silent.size() == 1 ? "" : "s", quoted(silent)));
      sooner(check.check_at, now.boot + (limits.exit_bound - since));
      return check;
    }
    check.holds = true;
    check.rule =
        fmt::format("lockstep: {}, and the rest is on silent nodes: {}", *stopped, quoted(silent));
    return check;
  }
  if (!reachable.empty())
    check.waits.push_back(
        fmt::format("node{} {} to be swept", reachable.size() == 1 ? "" : "s", quoted(reachable)));
  if (!silent.empty()) {
    check.waits.push_back(
        fmt::format("node{} {}, silent: {} `muster node declare-dead` ends the wait, if the "
                    "machine is really gone",
                    silent.size() == 1 ? "" : "s", quoted(silent),
                    "to come back, or until the job's orphan grace is over;"));
  }
  return check;
}

bool nothing_runs(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                  const AttemptRecord& attempt, Now now, const Limits& limits) {
  for (const NodePart& part : attempt.parts) {
    if (!can_run_nothing(check_part(ledger, presence, job, part, now, limits).liveness))
      return false;
  }
  return true;
}

}  // namespace muster::core
