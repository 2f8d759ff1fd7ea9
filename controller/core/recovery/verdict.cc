#include "controller/core/recovery/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>
#include <vector>

#include "common/engine/evidence.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/fence.h"
#include "controller/core/recovery/start_failures.h"
#include "controller/core/recovery/unknown_success.h"

namespace muster::core {
namespace {

// A status that came earlier on the same node's clock by more than this is no echo of a signal
// death.
constexpr Duration kEcho = std::chrono::seconds(1);
constexpr const char* kKilledForMemory = "oom";  // begins a signature
// Two nodes' messages that were sent together may arrive this far apart. Within this time the order
// of ends is not known.
constexpr Duration kDelayBar = std::chrono::milliseconds(250);

// The end of a process, a rank or an auxiliary process, that somebody saw and that muster had not
// requested.
struct End {
  const RankExited* rank = nullptr;  // exactly one of the two is set
  const AuxiliaryExited* auxiliary = nullptr;

  explicit End(const RankExited& exit) : rank(&exit) {}
  explicit End(const AuxiliaryExited& exit) : auxiliary(&exit) {}

  [[nodiscard]] const NodeName& node() const {
    return rank != nullptr ? rank->node : auxiliary->node;
  }
  [[nodiscard]] WallTime at() const {
    return rank != nullptr ? rank->node_time : auxiliary->node_time;
  }
  [[nodiscard]] WallTime by_controller() const {
    return rank != nullptr ? rank->controller_time : auxiliary->controller_time;
  }
  [[nodiscard]] std::string text() const {
    return rank != nullptr ? exit_text(*rank) : exit_text(*auxiliary);
  }
  [[nodiscard]] std::int32_t code() const { return rank != nullptr ? rank->code : auxiliary->code; }
  [[nodiscard]] std::int32_t signal() const {
    return rank != nullptr ? rank->signal : auxiliary->signal;
  }
  [[nodiscard]] const std::string& evidence() const {
    return rank != nullptr ? rank->evidence : auxiliary->evidence;
  }
  [[nodiscard]] bool oom() const { return rank != nullptr && rank->oom; }
  [[nodiscard]] bool consequence() const {
    return rank != nullptr && rank->evidence_kind == EvidenceKind::Consequence;
  }
};

bool asked_for(const RankExited& exit) { return exit.stop_requested; }
bool not_killed_unasked(const RankExited& exit) { return !exit.killed_unasked; }

// For one node: by its own clock, which orders the ends exactly.
template <class Match>
std::optional<End> first_of_part(const NodePart& part, Match match,
                                 bool (*left_out)(const RankExited&)) {
  std::optional<End> first;
  const auto consider = [&](const End& end) {
    if (match(end) && (!first || end.at() < first->at())) first = end;
  };
  for (const auto& [rank, exit] : part.exits) {
    if (!left_out(exit) && !exit.lost) consider(End(exit));
  }
  for (const auto& [name, exit] : part.auxiliaries) consider(End(exit));
  return first;
}

// The first end, and the ends on other nodes that may have been the first.
struct FirstEnds {
  End first;
  std::vector<End> others;
};

// For several nodes: by the controller's clock. Of ends whose order it cannot decide, one that
// shows a cause goes before those that show a consequence.
template <class Match>
std::optional<FirstEnds> first_ends(const AttemptRecord& attempt, Match match,
                                    bool (*left_out)(const RankExited&) = asked_for) {
  std::vector<End> ends;
  for (const NodePart& part : attempt.parts) {
    if (const std::optional<End> first = first_of_part(part, match, left_out))
      ends.push_back(*first);
  }
  if (ends.empty()) return std::nullopt;
  std::ranges::stable_sort(ends, {}, &End::by_controller);
  const End first = ends.front();
  const auto later = [&](const End& end) {
    return end.by_controller() - first.by_controller() > kDelayBar;
  };
  ends.erase(std::find_if(ends.begin() + 1, ends.end(), later), ends.end());
  if (!std::ranges::all_of(ends, &End::consequence))
    std::erase_if(ends, [](const End& end) { return end.consequence(); });
  return FirstEnds{.first = ends.front(), .others = {ends.begin() + 1, ends.end()}};
}

bool by_itself(const End& end) {
  return !end.oom() && ((end.signal() == 0 && end.code() != 0) || end.signal() == SIGABRT);
}
bool is_sigkill(const End& end) { return end.signal() == SIGKILL; }
bool killed(const End& end) { return end.oom() || (end.signal() != 0 && end.signal() != SIGABRT); }

// Excludes the node's restart and its disk, because other verdicts cover them. With a disk that
// refuses writes, the worker ended, or was killed, because nothing could be recorded any more.
const RankExited* first_lost_with_worker(const AttemptRecord& attempt) {
  const RankExited* first = nullptr;
  for (const NodePart& part : attempt.parts) {
    if (part.swept_why == SweptWhy::Rebooted || part.swept_why == SweptWhy::DiskRefusedWrites)
      continue;
    for (const auto& [rank, exit] : part.exits) {
      if (exit.lost && !exit.stop_requested &&
          (first == nullptr || exit.controller_time < first->controller_time))
        first = &exit;
    }
  }
  return first;
}

// The signature is equal if the same failure happens again: how the process ended, and its
// evidence.
Verdict of_end(const End& end, FailureClass cls, const std::string& how) {
  Verdict verdict{.cls = cls,
                  .node = end.node(),
                  .evidence = end.evidence(),
                  .signature = how + "|" + squash_digits(end.evidence())};
  if (end.rank != nullptr) {
    verdict.rank = end.rank->rank;
  } else {
    verdict.signature = end.auxiliary->name + ":" + verdict.signature;
  }
  verdict.reason = end.text();
  return verdict;
}

// The memory that the program itself reports as used up. Empty: none.
std::string_view memory_that_ended(const End& end) {
  if (!by_itself(end)) return "";
  const engine::Trouble trouble = engine::evidence_in(end.evidence()).trouble;
  if (trouble == engine::Trouble::DeviceMemory) return "out of device memory";
  return trouble == engine::Trouble::HostMemory ? "out of memory of the host" : "";
}

Verdict of_end(const End& end) {
  if (end.oom()) return of_end(end, FailureClass::Oom, kKilledForMemory);
  const std::string how = end.signal() != 0 ? fmt::format("signal:{}", end.signal())
                                            : fmt::format("status:{}", end.code());
  if (const std::string_view memory = memory_that_ended(end); !memory.empty()) {
    Verdict verdict = of_end(end, FailureClass::Oom, how);
    verdict.reason += fmt::format(", {}", memory);
    return verdict;
  }
  if (end.signal() != 0) return of_end(end, FailureClass::Signal, how);
  // The place that the program writes to is full, over its quota, or gone. This is no error of the
  // program, and coming twice proves nothing.
  if (engine::evidence_in(end.evidence()).trouble == engine::Trouble::Storage) {
    Verdict verdict = of_end(end, FailureClass::Node, "storage");
    verdict.reason += ": what it writes to is full, or gone";
    return verdict;
  }
  return of_end(end, FailureClass::UserError, how);
}

// The program's own end, which comes again as long as the program is the same. The exception: the
// kernel killed it for lack of memory that others had taken.
bool of_program(const Verdict& verdict) {
  return verdict.cls == FailureClass::UserError ||
         (verdict.cls == FailureClass::Oom && !verdict.signature.starts_with(kKilledForMemory));
}

// If the clocks allow more than one end to be the first, no one is accused alone.
Verdict naming_all(Verdict verdict, const FirstEnds& ends) {
  if (ends.others.empty()) return verdict;
  verdict.reason += "; " + ends.others.front().text();
  if (const std::size_t more = ends.others.size() - 1; more > 0)
    verdict.reason += fmt::format(", and {} other node{} lost ranks", more, more == 1 ? "" : "s");
  verdict.reason +=
      fmt::format(" within {}: which was first cannot be determined", age_text(kDelayBar));
  return verdict;
}

Verdict of_ends(const FirstEnds& ends) { return naming_all(of_end(ends.first), ends); }

// All evidence only shows that a peer or a collective failed. A network fault between sound
// programs looks like this, also a second time. It is no error of the program.
Verdict of_consequence(const FirstEnds& ends) {
  Verdict verdict = of_end(ends.first, FailureClass::Node, "consequence");
  verdict.reason += ", as after another's fault, which no process reports";
  return naming_all(std::move(verdict), ends);
}

Verdict of_start_failure(const JobRecord& job, const AttemptRecord& attempt,
                         const NodeStartFailed& failure, const Limits& limits) {
  if (const std::optional<TornCheckpoint> torn = torn_checkpoint(job, attempt)) {
    return {.cls = FailureClass::Launch,
            .reason = fmt::format("the checkpoint of step {} (attempt {}) is torn: {}",
                                  torn->point.step, torn->point.attempt.value, torn->seen),
            .signature = "start:checkpoint|torn"};
  }
  Verdict verdict{
      .cls = is_nodes_own(failure.why) ||
                     (failure.why == StartFailure::Checkpoint && !found_newer(failure))
                 ? FailureClass::Node
                 : FailureClass::Launch,
      .node = failure.node,
      .reason =
          fmt::format("node '{}' could not start its part: {}", failure.node.str(), failure.text),
      .signature = fmt::format("start:{}|{}", to_string(failure.why), squash_digits(failure.text))};
  if (const std::uint32_t lost = lost_to_ports(job, attempt); lost > limits.taken_ports_max)
    verdict.reason += fmt::format(
        "; {} starts in a row were lost to ports of {}-{} that others had taken ({}), of which the "
        "first {} cost nothing: see who uses the range on the node, or give the controller another "
        "--port-range",
        lost, limits.port_first, limits.port_last, ports_tried(job, attempt),
        limits.taken_ports_max);
  return verdict;
}

// Another instance is another state directory, which the cause of the break already reports.
bool same_instance(const Ledger& ledger, const NodePart& part) {
  const auto node = ledger.nodes.find(part.placed.node);
  return node != ledger.nodes.end() && node->second.instance == part.placed.instance;
}

std::optional<Verdict> of_node(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                               const AttemptRecord& attempt, Now now, const Limits& limits) {
  const auto verdict = [](const NodeName& node, std::string what, std::string_view signature) {
    return Verdict{.cls = FailureClass::Node,
                   .node = node,
                   .reason = fmt::format("node '{}' {}", node.str(), what),
                   .signature = fmt::format("node:{}", signature)};
  };
  for (const NodePart& part : attempt.parts) {
    if (part.idle()) continue;
    const NodeName& node = part.placed.node;
    if (part.swept) {
      const bool unfinished =
          std::ranges::any_of(part.exits, [](const auto& exit) { return exit.second.lost; }) ||
          part.exits.size() < part.placed.rank_count;
      if (part.swept_why == SweptWhy::DiskRefusedWrites &&
          std::ranges::any_of(part.exits, [](const auto& exit) {
            return exit.second.lost && !exit.second.stop_requested;
          }))
        return verdict(
            node,
            "could not record how its ranks ended: the disk of its state directory takes no writes",
            "disk");
      if (part.swept_why == SweptWhy::Rebooted && unfinished)
        return verdict(node, "was restarted under its ranks", "rebooted");
      if (part.swept_why == SweptWhy::NeverStarted && part.started && unfinished &&
          same_instance(ledger, part))
        return verdict(node, came_back_without(job, attempt.number), "without run directory");
      if (part.swept_why == SweptWhy::Orphaned) {
        return verdict(
            node,
            fmt::format("had no contact with the controller for longer than the orphan grace of {}",
                        age_text(orphan_grace(job.spec))),
            "orphaned");
      }
      continue;
    }
    switch (check_part(ledger, presence, job, part, now, limits).liveness) {
      case PartLiveness::Dead: return verdict(node, "was declared dead", "dead");
      case PartLiveness::GraceOver:
        return verdict(node,
                       fmt::format("was silent for longer than the orphan grace of {}",
                                   age_text(orphan_grace(job.spec))),
                       "silent");
      case PartLiveness::Silent:
        return verdict(
            node, fmt::format("went silent {} ago", age_text(now.boot - last_word(presence, node))),
            "silent");
      case PartLiveness::Swept:
      case PartLiveness::Reachable: break;
    }
  }
  return std::nullopt;
}

// Only the first message about the fault is known: a worker that another program stopped, a node
// that never started, or a lost state directory.
Verdict of_cause(const AttemptRecord& attempt) {
  Verdict verdict{.cls = FailureClass::Worker,
                  .reason = attempt.broke_cause,
                  .signature = "cause|" + squash_digits(attempt.broke_cause)};
  for (const NodePart& part : attempt.parts) {
    if (part.started && part.swept_why != SweptWhy::NeverStarted) continue;
    verdict.cls = FailureClass::Node;
    verdict.node = part.placed.node;
    break;
  }
  return verdict;
}

}  // namespace

Verdict judge(const Ledger& ledger, const Presence& presence, const JobRecord& job,
              const AttemptRecord& attempt, Now now, const Limits& limits) {
  if (attempt.cancelled) {
    return {.cls = FailureClass::Operator,
            .reason = cancelled_text(job.cancelled_by, job.cancel_reason),
            .signature = "cancelled"};
  }
  if (!attempt.drained.empty())
    return {.cls = FailureClass::Operator,
            .node = attempt.drained,
            .reason = attempt.broke_cause,
            .signature = "drained"};
  if (const NodeStartFailed* failure = first_start_failure(attempt))
    return of_start_failure(job, attempt, *failure, limits);
  if (!attempt.differing_input.empty())
    return {.cls = FailureClass::Launch,
            .reason = attempt.broke_cause,
            .signature = "start:inputs|they differ"};
  const std::optional<FirstEnds> own =
      first_ends(attempt, [](const End& end) { return by_itself(end) && !end.consequence(); });
  if (const std::optional<FirstEnds> ends = first_ends(attempt, killed)) {
    const bool echo = !own || own->first.node() != ends->first.node() ||
                      ends->first.at() - own->first.at() <= kEcho;
    if (echo) return of_ends(*ends);
  }
  if (const RankExited* exit = first_lost_with_worker(attempt)) {
    Verdict verdict = of_end(End(*exit), FailureClass::Worker, "worker");
    verdict.reason = fmt::format("the worker on node '{}' died, and rank {} with it",
                                 exit->node.str(), exit->rank.value);
    return verdict;
  }
  if (std::optional<Verdict> verdict = of_node(ledger, presence, job, attempt, now, limits))
    return *std::move(verdict);
  if (own) return of_ends(*own);
  if (const std::optional<FirstEnds> ends = first_ends(attempt, by_itself)) {
    // A rank without peers cannot fail because of another rank.
    if (attempt.world_size() <= 1) return of_ends(*ends);
    // The end of a killed rank is seen only when its memory is freed. Before that, a peer may have
    // failed because of it, and muster may have requested a stop.
    if (const std::optional<FirstEnds> unasked =
            first_ends(attempt, is_sigkill, not_killed_unasked))
      return of_ends(*unasked);
    return of_consequence(*ends);
  }
  if (attempt.ranks_well == attempt.world_size()) {
    if (const RankExited* exit = unknown_success(job, attempt)) {
      Verdict verdict = of_end(End(*exit), FailureClass::Node, "success unknown");
      verdict.reason = attempt.broke_cause;
      return verdict;
    }
    return {.cls = FailureClass::UserError,
            .reason = attempt.broke_cause,
            .signature = "success|" + squash_digits(attempt.broke_cause)};
  }
  return of_cause(attempt);
}

std::optional<std::string> gives_up(const JobRecord& job, const AttemptRecord& attempt,
                                    const Verdict& verdict, std::int64_t best_step,
                                    bool quarantines, Now now, const Limits& limits) {
  const NodeStartFailed* failure = first_start_failure(attempt);
  if (verdict.cls == FailureClass::Launch && failure != nullptr && is_jobs_own(failure->why, job)) {
    return "a failure before the program started is not tried again";
  }
  if (const std::optional<TornCheckpoint> torn = torn_checkpoint(job, attempt);
      torn && !torn->older)
    return "no older whole one is there to go on from, and it is not begun anew by itself: put its "
           "files back and resume the job, or submit it anew";
  const AttemptRecord* before = job.before(attempt);
  const bool seen_before = before != nullptr && before->verdict && of_program(*before->verdict) &&
                           before->verdict->signature == verdict.signature;
  // Further than ever: an error of the program itself would have stopped the last attempt there.
  // But two faults of the network may look the same.
  const bool further = best_step > step_to_beat(job);
  if (of_program(verdict) && seen_before && !further && !quarantines)
    return verdict.cls == FailureClass::Oom ? "the same want of memory twice in a row"
                                            : "the same user error twice in a row";
  const std::uint32_t idle = further ? 0 : job.attempts_without_progress + 1;
  if (idle >= limits.attempts_without_progress_max)
    return fmt::format("{} attempts in a row without a new best step", idle);
  std::uint32_t charged = 1;
  const Duration window = restart_window(job.spec);
  for (const AttemptRecord& earlier : job.attempts) {
    const bool recent =
        earlier.ended_at && (window <= Duration::zero() || now.wall - *earlier.ended_at <= window);
    if (earlier.charged && recent) ++charged;
  }
  const std::uint32_t allowed = max_restarts(job.spec);
  if (charged > allowed) {
    return fmt::format("{} broken attempt{} within {}, and recovery.max_restarts is {}", charged,
                       charged == 1 ? "" : "s", age_text(window), allowed);
  }
  return std::nullopt;
}

}  // namespace muster::core
