#include "controller/shell/replay.h"

#include <algorithm>

#include "controller/core/model/event_fields.h"
#include "controller/core/recovery/checkpoints.h"

namespace muster::controller {
namespace {

std::string attempt_text(AttemptNo attempt) { return "attempt " + std::to_string(attempt.value); }

std::optional<std::string> taken_device(const core::Ledger& ledger,
                                        const core::AttemptPlaced& placed) {
  for (const core::PlacedNode& node : placed.nodes) {
    const auto holders = ledger.indexes.device_holders.find(node.node);
    if (holders == ledger.indexes.device_holders.end()) continue;
    for (const std::uint32_t device : node.devices) {
      if (holders->second.contains(device))
        return "device " + std::to_string(device) + " of node '" + node.node.str() +
               "' is reserved by another attempt";
    }
  }
  return std::nullopt;
}

core::JobStep step_of(const core::JobEnded& ended, core::JobPhase from) {
  switch (ended.outcome) {
    case core::Outcome::Succeeded: return core::JobStep::Finished;
    case core::Outcome::Failed: return core::JobStep::GaveUp;
    case core::Outcome::Cancelled:
      return from == core::JobPhase::Queued ? core::JobStep::CancelAsked
                                            : core::JobStep::StoppedForCancel;
  }
  return core::JobStep::GaveUp;
}

// The states of attempts that apply() relies on.
std::optional<std::string> bad_state(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                     const core::EventBody& body) {
  const bool current = &attempt == job.current();
  const std::string which = attempt_text(attempt.number);
  if (std::holds_alternative<core::AttemptBroke>(body)) {
    if (!current || !core::next_state(attempt.state, core::AttemptStep::Broke) ||
        !next_phase(job.phase, core::JobStep::Broke))
      return which + " broke, but it was not the live one";
  }
  if (const auto* ended = std::get_if<core::AttemptEnded>(&body)) {
    if (!current || !core::next_state(attempt.state, core::AttemptStep::TornDown))
      return which + " ended, but it was not being stopped";
    if (!ended->job_ends && !next_phase(job.phase, core::JobStep::TornDown))
      return which + " ended while " + std::string(to_string(job.phase));
  }
  if (std::holds_alternative<core::AttemptCompleted>(body)) {
    if (!current || !core::next_state(attempt.state, core::AttemptStep::AllDone))
      return which + " completed, but it was not the live one";
    if (!next_phase(job.phase, core::JobStep::Finished))
      return which + " completed while " + std::string(to_string(job.phase));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> nonsense(const core::Ledger& ledger, const core::EventBody& body) {
  const JobId* id = job_of(body);
  if (id == nullptr) return std::nullopt;
  if (std::holds_alternative<core::JobArchived>(body) ||
      std::holds_alternative<core::TombstoneDropped>(body))
    return std::nullopt;
  const auto found = ledger.jobs.find(*id);
  if (std::holds_alternative<core::JobSubmitted>(body)) {
    if (found != ledger.jobs.end()) return "submitted a second time";
    return std::nullopt;
  }
  if (found == ledger.jobs.end()) return "it was never submitted";
  const core::JobRecord& job = found->second;
  if (const auto* succeeded = std::get_if<core::PredecessorSucceeded>(&body)) {
    if (!job.waits_for.contains(succeeded->predecessor))
      return "it did not wait for job '" + succeeded->predecessor.str() + "'";
    return std::nullopt;
  }
  const AttemptNo number = attempt_of(body);
  if (const auto* placed = std::get_if<core::AttemptPlaced>(&body)) {
    if (number.value == 0) return "an attempt without a number was placed";
    if (job.current() != nullptr && number <= job.current()->number)
      return attempt_text(number) + " placed after " + attempt_text(job.current()->number);
    if (placed->nodes.empty()) return attempt_text(number) + " placed on no node";
    if (job.phase != core::JobPhase::Queued)
      return attempt_text(number) + " placed while " + std::string(to_string(job.phase));
    if (!job.waits_for.empty())
      return attempt_text(number) + " placed before job '" + job.waits_for.begin()->str() +
             "' had succeeded";
    return taken_device(ledger, *placed);
  }
  if (const auto* ended = std::get_if<core::JobEnded>(&body)) {
    if (!next_phase(job.phase, step_of(*ended, job.phase)))
      return "ended while " + std::string(to_string(job.phase));
    if (job.current() != nullptr && !core::is_over(job.current()->state))
      return "ended before " + attempt_text(job.current()->number) + " did";
  }
  if (number.value == 0) return std::nullopt;
  // A checkpoint found on disk may belong to an attempt that an accepted loss removed from the
  // journal.
  if (std::holds_alternative<core::CheckpointCompleted>(body) && job.current() != nullptr &&
      number < job.current()->number)
    return std::nullopt;
  if (const auto* quarantined = std::get_if<core::CheckpointQuarantined>(&body)) {
    if (core::has_checkpoint(job, number, quarantined->step)) return std::nullopt;
    return "step " + std::to_string(quarantined->step) + " of " + attempt_text(number) +
           " quarantined, but it was never complete";
  }
  const core::AttemptRecord* attempt = job.attempt(number);
  if (attempt == nullptr) return attempt_text(number) + " was never placed";
  if (auto why = bad_state(job, *attempt, body)) return why;
  const NodeName* node = node_of(body);
  if (node == nullptr) return std::nullopt;
  const core::NodePart* part = attempt->part(*node);
  if (part == nullptr) return attempt_text(number) + " has no part on node '" + node->str() + "'";
  if (const auto* exited = std::get_if<core::RankExited>(&body)) {
    const std::uint32_t first = part->placed.first_rank.value;
    if (exited->rank.value < first || exited->rank.value - first >= part->placed.rank_count) {
      return "rank " + std::to_string(exited->rank.value) + " of " + attempt_text(number) +
             " is not one of node '" + node->str() + "'";
    }
  }
  return std::nullopt;
}

void Replay::row(const journal::Row& row) {
  if (auto why = nonsense(ledger_, row.event.body)) {
    unreadable_.emplace(*job_of(row.event.body), "journal row " + std::to_string(row.index.value) +
                                                     " makes no sense: " + *why);
    return;
  }
  core::apply(ledger_, row.index, row.event);
  if (each_) each_(row, ledger_);
}

std::optional<core::JobRecord> refold(const journal::ArchivedJob& archived) {
  Replay replay;
  for (const journal::Row& row : archived.rows) {
    if (std::holds_alternative<core::JobArchived>(row.event.body) ||
        std::holds_alternative<core::TombstoneDropped>(row.event.body))
      continue;
    replay.row(row);
  }
  const auto found = replay.ledger().jobs.find(archived.job);
  if (found == replay.ledger().jobs.end()) return std::nullopt;
  return std::move(found->second);
}

}  // namespace muster::controller
