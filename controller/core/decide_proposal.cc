#include <fmt/format.h>

#include <algorithm>

#include "controller/core/chains/predecessors.h"
#include "controller/core/chains/saved_before.h"
#include "controller/core/decide.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/placement/placed_table.h"
#include "controller/core/placement/rank_files.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/fence.h"
#include "controller/core/recovery/last_step.h"
#include "controller/core/recovery/log_uploads.h"
#include "controller/core/recovery/next_attempt.h"
#include "controller/core/recovery/notes.h"
#include "controller/core/recovery/start_failures.h"
#include "controller/core/recovery/unknown_success.h"
#include "controller/core/recovery/uploads.h"
#include "controller/core/recovery/verdict.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"

namespace muster::core {
namespace {

// Checked again, although propose() has just checked it: a device that is given twice could not be
// taken back.
bool still_free(const Deciding& in, const ProposePlacement& input) {
  std::uint32_t next_rank = 0;
  for (const PlacedNode& placed : input.nodes) {
    const auto node = in.ledger.nodes.find(placed.node);
    if (node == in.ledger.nodes.end() || node->second.dead) return false;
    if (node->second.drain) return false;
    if (node->second.boot_id != placed.boot_id || node->second.instance != placed.instance)
      return false;
    if (!is_connected(in.presence, placed.node) ||
        is_silent(in.presence, placed.node, in.now.boot, in.limits.silent_after))
      return false;
    if (!in.presence.nodes.at(placed.node).unknown_runs.empty()) return false;
    if (placed.first_rank.value != next_rank) return false;
    next_rank += placed.rank_count;
    const auto holders = in.ledger.indexes.device_holders.find(placed.node);
    if (holders == in.ledger.indexes.device_holders.end()) continue;
    if (std::ranges::any_of(placed.devices,
                            [&](std::uint32_t device) { return holders->second.contains(device); }))
      return false;
  }
  return next_rank > 0 && !in.ledger.indexes.ports_reserved.contains(
                              {input.nodes.front().address, input.master_port});
}

CheckpointQuarantined quarantined(const ResumePoint& suspect, const JobRecord& job,
                                  const AttemptRecord& attempt, const Verdict& verdict) {
  return {.job = job.id,
          .attempt = suspect.attempt,
          .step = suspect.step,
          .reason =
              fmt::format("attempts {} and {} went on from it and failed the same way: {}",
                          job.before(attempt)->number.value, attempt.number.value, verdict.reason)};
}

CheckpointQuarantined quarantined(const TornCheckpoint& torn, const JobRecord& job) {
  const ResumePoint& older = *torn.older;
  return {
      .job = job.id,
      .attempt = torn.point.attempt,
      .step = torn.point.step,
      .reason = fmt::format("{}; the job goes on from step {}{}", torn.seen, older.step,
                            older.from_start ? ", which start names"
                                             : fmt::format(" of attempt {}", older.attempt.value))};
}

bool found_newer(const AttemptRecord& attempt) {
  return std::ranges::any_of(attempt.parts, [](const NodePart& part) {
    return part.start_failed && found_newer(*part.start_failed);
  });
}

Outcome ending(const JobRecord& job) {
  return job.cancel_requested ? Outcome::Cancelled : Outcome::Failed;
}

bool success_seen(const AttemptRecord& attempt) {
  return std::ranges::any_of(attempt.parts, [](const NodePart& part) {
    return std::ranges::any_of(part.exits,
                               [](const auto& exit) { return exit.second.success_seen; });
  });
}

// Empty: the success condition of the spec is met, as far as the agents' answers say.
std::string not_met(const JobRecord& job, const AttemptRecord& attempt) {
  const v1::JobSpec& spec = job.spec;
  switch (spec.success().means_case()) {
    case v1::SuccessSpec::kRegex:
      if (!success_seen(attempt))
        return fmt::format(
            "every rank ended with status 0, but no line of any log matches success.regex '{}'",
            spec.success().regex());
      break;
    case v1::SuccessSpec::kFile:
      if (!success_seen(attempt))
        return fmt::format("every rank ended with status 0, but success.file '{}' is not there",
                           spec.success().file());
      break;
    case v1::SuccessSpec::kLastStep: return last_step_missing(job, attempt);
    case v1::SuccessSpec::kRankFile: return rank_file_missing(job, attempt);
    case v1::SuccessSpec::kExit0:
    case v1::SuccessSpec::MEANS_NOT_SET: break;
  }
  return {};
}

// The cause that breaks the attempt. Empty: the success condition of the spec is met.
std::string success_missing(const JobRecord& job, const AttemptRecord& attempt) {
  std::string missing = not_met(job, attempt);
  const bool each_rank = job.spec.success().means_case() == v1::SuccessSpec::kRankFile;
  if (missing.empty() && !each_rank) return {};
  if (const RankExited* exit = unknown_success(job, attempt))
    return unknown_success_text(job, *exit);
  return missing;
}

}  // namespace

Decision decide_one(const Deciding& in, const ProposePlacement& input) {
  const auto job = in.ledger.jobs.find(input.job);
  if (job == in.ledger.jobs.end() || job->second.phase != JobPhase::Queued) return nothing();
  if (!job->second.waits_for.empty()) return nothing();
  if (input.attempt != next_attempt(job->second, in.presence) || input.nodes.empty() ||
      !still_free(in, input))
    return nothing();
  if (unheard_since_start(in.ledger, in.presence, job->second, in.now, in.limits)) return nothing();
  // Chosen here: a checkpoint may have been accepted, or a secret set, since the proposal.
  std::optional<ResumePoint> resume = newest_checkpoint(job->second);
  auto secrets = pinned_secrets(in.ledger, job->second, resume.has_value());
  if (!secrets) return nothing();
  auto inputs = pinned_inputs(in.ledger, job->second, *secrets);
  if (!inputs) return nothing();
  auto output = pinned_output(in.ledger, job->second, *secrets);
  if (!output) return nothing();
  auto logs_output = pinned_logs_output(in.ledger, job->second, *secrets);
  if (!logs_output) return nothing();
  return accept(
      AttemptPlaced{.job = input.job,
                    .attempt = input.attempt,
                    .nodes = input.nodes,
                    .master_port = input.master_port,
                    .resume = std::move(resume),
                    .table_sha256 = table_sha256(job->second.spec, input.attempt, input.nodes),
                    .saved = saved_before(in.ledger, job->second),
                    .secrets = *std::move(secrets),
                    .inputs = *std::move(inputs),
                    .output = *std::move(output),
                    .logs_output = *std::move(logs_output)});
}

Decision decide_one(const Deciding& in, const ProposeCheckpoint& input) {
  const Current current = current_of(in.ledger, input.job, input.attempt);
  if (!current || !accepts_checkpoints(*current.job, *current.attempt) ||
      has_checkpoint(*current.job, input.attempt, input.step))
    return nothing();
  return accept(CheckpointCompleted{.job = input.job,
                                    .attempt = input.attempt,
                                    .step = input.step,
                                    .path = input.path,
                                    .bytes = input.bytes,
                                    .shards = input.shards});
}

Decision decide_one(const Deciding& in, const ProposeBreak& input) {
  const Current current = current_of(in.ledger, input.job, input.attempt);
  if (!current || current.attempt->state != AttemptState::Live) return nothing();
  return accept(AttemptBroke{.job = input.job,
                             .attempt = input.attempt,
                             .cause = input.cause,
                             .fault_time = in.now.wall,
                             .detected_at = in.now.wall,
                             .drained = input.drained});
}

Decision decide_one(const Deciding& in, const ProposeEnd& input) {
  const Current current = current_of(in.ledger, input.job, input.attempt);
  if (!current || current.job->phase != JobPhase::Draining) return nothing();
  if (is_over(current.attempt->state)) {
    // The attempt's end is there, but its job's end is not: the journal was cut between the two (an
    // accepted loss).
    return accept(JobEnded{
        .job = input.job, .outcome = ending(*current.job), .verdict = current.attempt->verdict});
  }
  const FenceCheck fence =
      check_fence(in.ledger, in.presence, *current.job, *current.attempt, in.now, in.limits);
  if (!fence.holds) return nothing();
  AttemptEnded ended{.job = input.job, .attempt = input.attempt, .fence = fence.rule};
  ended.verdict = judge(in.ledger, in.presence, *current.job, *current.attempt, in.now, in.limits);
  // A conflict about a port that muster took from its own range is not the job's fault. But a range
  // that is never free must end the job.
  const std::uint32_t lost = lost_to_ports(*current.job, *current.attempt);
  const std::optional<TornCheckpoint> torn = torn_checkpoint(*current.job, *current.attempt);
  const bool on_from_another = (torn && torn->older) || found_newer(*current.attempt);
  // A lost end of the journal is not the job's fault.
  const bool by_loss =
      current.job->attempts_lost > 0 &&
      (ended.verdict.cls == FailureClass::Node || ended.verdict.cls == FailureClass::Worker);
  const bool drained = !current.attempt->drained.empty();
  ended.charged = !current.attempt->cancelled && !drained && !on_from_another && !by_loss &&
                  (lost == 0 || lost > in.limits.taken_ports_max);
  ended.best_step = std::max(best_step_of(in.presence, *current.job, *current.attempt),
                             last_step_reported(*current.attempt));
  const bool cancelled = current.job->cancel_requested;
  const std::optional<ResumePoint> suspect =
      suspect_checkpoint(*current.job, *current.attempt, ended.verdict, ended.best_step, in.limits);
  std::optional<std::string> enough;
  if (!cancelled && ended.charged)
    enough = gives_up(*current.job, *current.attempt, ended.verdict, ended.best_step,
                      suspect.has_value(), in.now, in.limits);
  ended.job_ends = cancelled || enough;
  Decision decision = accept(ended);
  if (!ended.job_ends) {
    if (suspect)
      decision.events.emplace_back(
          quarantined(*suspect, *current.job, *current.attempt, ended.verdict));
    if (torn && torn->older) decision.events.emplace_back(quarantined(*torn, *current.job));
    return decision;
  }
  Verdict last = ended.verdict;
  if (enough) last.reason += "; " + *enough;
  if (cancelled && (last.cls != FailureClass::Operator || drained))
    last = Verdict{.cls = FailureClass::Operator,
                   .reason = "cancelled while it was being stopped",
                   .signature = "cancelled"};
  decision.events.emplace_back(
      JobEnded{.job = input.job, .outcome = ending(*current.job), .verdict = std::move(last)});
  return decision;
}

namespace {

// Nodes that still have outputs are lost.
void add_success(Decision& decision, const JobRecord& job, AttemptNo attempt) {
  if (const auto lost = uploading_nodes(job); !lost.empty())
    decision.events.emplace_back(AttemptNoted{.job = job.id,
                                              .attempt = attempt,
                                              .note = Note::OutputsIncomplete,
                                              .node = {},
                                              .text = some_of(lost)});
  decision.events.emplace_back(JobEnded{.job = job.id, .outcome = Outcome::Succeeded});
}

}  // namespace

Decision decide_one(const Deciding& in, const ProposeComplete& input) {
  const Current current = current_of(in.ledger, input.job, input.attempt);
  if (!current || current.job->phase != JobPhase::Completing) return nothing();
  // It waited for its outputs, or, as above, the journal was cut between the attempt's end and its
  // job's end.
  if (current.attempt->state == AttemptState::Completed) {
    if (current.job->cancel_requested)
      return accept(JobEnded{
          .job = input.job,
          .outcome = Outcome::Cancelled,
          .verdict = Verdict{
              .cls = FailureClass::Operator,
              .reason = cancelled_text(current.job->cancelled_by, current.job->cancel_reason),
              .signature = "cancelled"}});
    if (check_uploads(in.ledger, in.presence, *current.job, in.now, in.limits).go_on)
      return nothing();
    Decision decision;
    add_success(decision, *current.job, input.attempt);
    return decision;
  }
  if (!nothing_runs(in.ledger, in.presence, *current.job, *current.attempt, in.now, in.limits))
    return nothing();
  if (std::string missing = success_missing(*current.job, *current.attempt); !missing.empty()) {
    return accept(AttemptBroke{.job = input.job,
                               .attempt = input.attempt,
                               .cause = std::move(missing),
                               .fault_time = in.now.wall,
                               .detected_at = in.now.wall});
  }
  const std::int64_t best_step = std::max(best_step_of(in.presence, *current.job, *current.attempt),
                                          last_step_reported(*current.attempt));
  Decision decision =
      accept(AttemptCompleted{.job = input.job, .attempt = input.attempt, .best_step = best_step});
  if (!check_uploads(in.ledger, in.presence, *current.job, in.now, in.limits).go_on)
    add_success(decision, *current.job, input.attempt);
  return decision;
}

Decision decide_one(const Deciding& in, const ProposeOutputsLost& input) {
  const auto job = in.ledger.jobs.find(input.job);
  const AttemptRecord* attempt =
      job == in.ledger.jobs.end() ? nullptr : job->second.attempt(input.attempt);
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(input.node);
  if (part == nullptr || !part->swept) return nothing();
  if (!(input.logs ? part->uploads_logs : part->uploads)) return nothing();
  return accept(OutputsUploaded{.job = input.job,
                                .attempt = input.attempt,
                                .node = input.node,
                                .problem = std::string(kDirectoryLost),
                                .logs = input.logs,
                                .node_time = in.now.wall,
                                .controller_time = in.now.wall});
}

Decision decide_one(const Deciding& in, const ProposeCheckpointLost& input) {
  const auto job = in.ledger.jobs.find(input.job);
  const AttemptRecord* attempt =
      job == in.ledger.jobs.end() ? nullptr : job->second.attempt(input.attempt);
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(input.node);
  if (part == nullptr) return nothing();
  const auto lost =
      checkpoint_lost(in.ledger, in.presence, job->second, *attempt, *part, in.now, in.limits);
  if (!lost) return nothing();
  return accept(OutputsUploaded{.job = input.job,
                                .attempt = input.attempt,
                                .node = input.node,
                                .problem = "the node is lost",
                                .step = lost->step,
                                .seal = lost->seal,
                                .node_time = in.now.wall,
                                .controller_time = in.now.wall});
}

Decision decide_one(const Deciding& in, const ProposeCaughtUp& input) {
  const Current current = current_of(in.ledger, input.job, input.attempt);
  if (!current || current.attempt->state != AttemptState::Live || current.attempt->caught_up_at ||
      input.attempt.value < 2)
    return nothing();
  return accept(CaughtUp{.job = input.job, .attempt = input.attempt, .step = input.step});
}

Decision decide_one(const Deciding& in, const ProposeNote& input) {
  const Current current = current_of(in.ledger, input.note.job, input.note.attempt);
  if (!current || !takes_note(*current.job, *current.attempt, input.note.note)) return nothing();
  return accept(input.note);
}

Decision decide_one(const Deciding& in, const ProposeSwept& input) {
  const auto job = in.ledger.jobs.find(input.job);
  const AttemptRecord* attempt =
      job == in.ledger.jobs.end() ? nullptr : job->second.attempt(input.attempt);
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(input.node);
  const auto node = in.ledger.nodes.find(input.node);
  if (part == nullptr || part->swept || node == in.ledger.nodes.end()) return nothing();
  // Processes may still live: only the agent can report that.
  if (node->second.boot_id == part->placed.boot_id) return nothing();
  Decision decision;
  for (std::uint32_t offset = 0; offset < part->placed.rank_count; ++offset) {
    const RankNo rank(part->placed.first_rank.value + offset);
    if (part->exits.contains(rank)) continue;
    decision.events.emplace_back(RankExited{.job = input.job,
                                            .attempt = input.attempt,
                                            .node = input.node,
                                            .rank = rank,
                                            .code = -1,
                                            .lost = true,
                                            .node_time = in.now.wall,
                                            .controller_time = in.now.wall});
  }
  const bool live = attempt == job->second.current() && attempt->state == AttemptState::Live;
  if (live && !decision.events.empty()) {
    decision.events.emplace_back(AttemptBroke{
        .job = input.job,
        .attempt = input.attempt,
        .cause = fmt::format("node '{}' came back without the run (rebooted)", input.node.str()),
        .fault_time = in.now.wall,
        .detected_at = in.now.wall});
  }
  const NodeSwept swept{.job = input.job,
                        .attempt = input.attempt,
                        .node = input.node,
                        .why = SweptWhy::Rebooted,
                        .node_time = in.now.wall,
                        .controller_time = in.now.wall};
  decision.events.emplace_back(swept);
  if (auto lost = lost_outputs(*part, swept)) decision.events.emplace_back(*std::move(lost));
  if (auto lost = lost_logs(*part, swept)) decision.events.emplace_back(*std::move(lost));
  return decision;
}

Decision decide_one(const Deciding& in, const ProposeArchive& input) {
  const auto found = in.ledger.jobs.find(input.job);
  if (found == in.ledger.jobs.end() || !is_final(found->second.phase)) return nothing();
  // The jobs that wait for it must first learn how it ended.
  if (in.ledger.indexes.dependents.contains(input.job)) return nothing();
  const JobRecord& job = found->second;
  Outcome outcome = Outcome::Failed;
  if (job.phase == JobPhase::Succeeded) outcome = Outcome::Succeeded;
  if (job.phase == JobPhase::Cancelled) outcome = Outcome::Cancelled;
  Decision decision;
  for (OutputsUploaded& lost : logs_never_to_come(job, in.now.wall))
    decision.events.emplace_back(std::move(lost));
  decision.events.emplace_back(JobArchived{.job = job.id,
                                           .name = job.spec.name(),
                                           .request_id = job.request_id,
                                           .outcome = outcome,
                                           .ended_at = *job.ended_at,
                                           .chain = JobId(job.resolved.stage().chain()),
                                           .chain_name = job.spec.stage().chain_name(),
                                           .saved = saved_by(job),
                                           .owner = job.owner});
  return decision;
}

Decision decide_one(const Deciding& in, const ProposeDropTombstone& input) {
  if (!in.ledger.tombstones.contains(input.job)) return nothing();
  return accept(TombstoneDropped{.job = input.job});
}

Decision decide_one(const Deciding& in, const ProposeSettle& input) {
  return settle(in.ledger, input.predecessor);
}

}  // namespace muster::core
