#include "controller/core/verdict.h"

#include <fmt/format.h>

#include <csignal>

#include "controller/core/fence.h"
#include "controller/core/spec_view.h"
#include "controller/core/start_failures.h"
#include "controller/core/text.h"

namespace muster::core {
namespace {

// An earlier status on the same node's clock by more than this is no echo of a signal death.
constexpr Duration kEcho = std::chrono::seconds(1);

const NodeStartFailed* first_start_failure(const AttemptRecord& attempt) {
  const NodeStartFailed* first = nullptr;
  for (const NodePart& part : attempt.parts) {
    if (part.start_failed && (first == nullptr || part.start_failed->node_time < first->node_time)) first = &*part.start_failed;
  }
  return first;
}

template <class Match>
const RankExited* first_exit(const AttemptRecord& attempt, Match match) {
  const RankExited* first = nullptr;
  for (const NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) {
      if (!exit.stop_requested && match(exit) && (first == nullptr || exit.node_time < first->node_time)) first = &exit;
    }
  }
  return first;
}

bool own_status(const RankExited& exit) { return !exit.lost && !exit.oom && ((exit.signal == 0 && exit.code != 0) || exit.signal == SIGABRT); }
bool killed(const RankExited& exit) { return !exit.lost && (exit.oom || (exit.signal != 0 && exit.signal != SIGABRT)); }

// Not the node's restart: that is the node's own story.
const RankExited* first_lost_with_worker(const AttemptRecord& attempt) {
  return first_exit(attempt, [&](const RankExited& exit) { return exit.lost && attempt.part(exit.node)->swept_reason != "rebooted"; });
}

Verdict of_exit(const RankExited& exit, FailureClass cls, std::string signature) {
  return {.cls = cls,
          .node = exit.node,
          .rank = exit.rank,
          .reason = exit_text(exit),
          .evidence = exit.evidence,
          .signature = signature + "|" + squash_digits(exit.evidence)};
}

Verdict of_killed(const RankExited& exit) {
  if (exit.oom) return of_exit(exit, FailureClass::Oom, "oom");
  return of_exit(exit, FailureClass::Signal, fmt::format("signal:{}", exit.signal));
}

Verdict of_start_failure(const NodeStartFailed& failure) {
  return {.cls = is_nodes_own(failure.why) ? FailureClass::Node : FailureClass::Launch,
          .node = failure.node,
          .reason = fmt::format("node '{}' could not start its part: {}", failure.node.str(), failure.text),
          .signature = fmt::format("start:{}|{}", to_string(failure.why), squash_digits(failure.text))};
}

std::optional<Verdict> of_node(const Ledger& ledger, const Presence& presence, const JobRecord& job, const AttemptRecord& attempt, Now now,
                               const Limits& limits) {
  const auto verdict = [](const NodeName& node, std::string what, std::string_view signature) {
    return Verdict{
        .cls = FailureClass::Node, .node = node, .reason = fmt::format("node '{}' {}", node.str(), what), .signature = fmt::format("node:{}", signature)};
  };
  for (const NodePart& part : attempt.parts) {
    if (part.idle()) continue;
    const NodeName& node = part.placed.node;
    if (part.swept) {
      const bool unfinished = std::ranges::any_of(part.exits, [](const auto& exit) { return exit.second.lost; }) || part.exits.size() < part.placed.rank_count;
      if (part.swept_reason == "rebooted" && unfinished) return verdict(node, "was restarted under its ranks", "rebooted");
      if (part.swept_reason == "orphaned") {
        return verdict(node, fmt::format("had no contact with the controller for longer than the orphan grace of {}", age_text(orphan_grace(job.spec))),
                       "orphaned");
      }
      continue;
    }
    switch (look_at_part(ledger, presence, job, part, now, limits).sight) {
      case PartSight::Dead: return verdict(node, "was declared dead", "dead");
      case PartSight::GraceOver:
        return verdict(node, fmt::format("was silent for longer than the orphan grace of {}", age_text(orphan_grace(job.spec))), "silent");
      case PartSight::Silent: return verdict(node, fmt::format("went silent {} ago", age_text(now.boot - last_word(presence, node))), "silent");
      case PartSight::Swept:
      case PartSight::Reachable: break;
    }
  }
  return std::nullopt;
}

// Nothing but the first word of it is known: a worker told to stop by a stranger, a node that never started, a lost state directory.
Verdict of_cause(const AttemptRecord& attempt) {
  Verdict verdict{.cls = FailureClass::Worker, .reason = attempt.broke_cause, .signature = "cause|" + squash_digits(attempt.broke_cause)};
  for (const NodePart& part : attempt.parts) {
    if (part.started && part.swept_reason != "never started") continue;
    verdict.cls = FailureClass::Node;
    verdict.node = part.placed.node;
    break;
  }
  return verdict;
}

}  // namespace

Verdict judge(const Ledger& ledger, const Presence& presence, const JobRecord& job, const AttemptRecord& attempt, Now now, const Limits& limits) {
  if (attempt.cancelled) {
    const std::string why = job.cancel_reason.empty() ? "" : ": " + job.cancel_reason;
    return {.cls = FailureClass::Operator, .reason = "cancelled" + why, .signature = "cancelled"};
  }
  if (const NodeStartFailed* failure = first_start_failure(attempt)) return of_start_failure(*failure);
  const RankExited* first_own = first_exit(attempt, own_status);
  if (const RankExited* exit = first_exit(attempt, killed)) {
    const bool echo = first_own == nullptr || first_own->node != exit->node || exit->node_time - first_own->node_time <= kEcho;
    if (echo) return of_killed(*exit);
  }
  if (const RankExited* exit = first_lost_with_worker(attempt)) {
    Verdict verdict = of_exit(*exit, FailureClass::Worker, "worker");
    verdict.reason = fmt::format("the worker on node '{}' died, and rank {} with it", exit->node.str(), exit->rank.value);
    return verdict;
  }
  if (std::optional<Verdict> verdict = of_node(ledger, presence, job, attempt, now, limits)) return *std::move(verdict);
  if (first_own != nullptr) {
    if (first_own->signal != 0) return of_exit(*first_own, FailureClass::Signal, fmt::format("signal:{}", first_own->signal));
    return of_exit(*first_own, FailureClass::UserError, fmt::format("status:{}", first_own->code));
  }
  if (attempt.ranks_well == attempt.world_size()) {
    return {.cls = FailureClass::UserError, .reason = attempt.broke_cause, .signature = "success|" + squash_digits(attempt.broke_cause)};
  }
  return of_cause(attempt);
}

std::optional<std::string> gives_up(const JobRecord& job, const AttemptRecord& attempt, const Verdict& verdict, std::int64_t best_step, bool sets_aside,
                                    Now now, const Limits& limits) {
  if (verdict.cls == FailureClass::Launch && is_jobs_own(first_start_failure(attempt)->why)) {
    return "a failure before the program started is not tried again";
  }
  const AttemptRecord* before = job.attempt(AttemptNo(attempt.number.value - 1));
  const bool seen_before =
      before != nullptr && before->verdict && before->verdict->cls == FailureClass::UserError && before->verdict->signature == verdict.signature;
  // Further than ever: an error of the program itself would have met the last attempt there. Two faults of the network may look the same.
  const bool further = best_step > job.best_step;
  if (verdict.cls == FailureClass::UserError && seen_before && !further && !sets_aside) return "the same user error twice in a row";
  const std::uint32_t idle = further ? 0 : job.attempts_without_progress + 1;
  if (idle >= limits.attempts_without_progress_max) return fmt::format("{} attempts in a row without a new best step", idle);
  std::uint32_t charged = 1;
  const Duration window = restart_window(job.spec);
  for (const AttemptRecord& earlier : job.attempts) {
    const bool recent = earlier.ended_at && (window <= Duration::zero() || now.wall - *earlier.ended_at <= window);
    if (earlier.charged && recent) ++charged;
  }
  const std::uint32_t allowed = max_restarts(job.spec);
  if (charged > allowed) {
    return fmt::format("{} broken attempt{} within {}, and recovery.max_restarts is {}", charged, charged == 1 ? "" : "s", age_text(window), allowed);
  }
  return std::nullopt;
}

}  // namespace muster::core
