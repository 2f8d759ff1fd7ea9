#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/chains/chains.h"
#include "controller/core/chains/predecessors.h"
#include "controller/core/chains/start_point.h"
#include "controller/core/decide.h"
#include "controller/core/model/text.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"

namespace muster::core {

namespace {

std::vector<Submitted> all_of(const SubmitJob& input) {
  std::vector<Submitted> all{{.job = input.job,
                              .spec = input.spec,
                              .resolved = input.resolved,
                              .spec_hash = input.spec_hash}};
  for (const ChainedJob& one : input.behind)
    all.push_back(
        {.job = one.job, .spec = one.spec, .resolved = one.resolved, .spec_hash = one.spec_hash});
  return all;
}

std::string doing_of(const v1::JobSpec& spec) {
  return spec.has_stage()
             ? fmt::format("submitting stage '{}' of chain '{}': ", spec.stage().name(),
                           spec.stage().chain_name())
             : fmt::format("submitting job '{}': ", spec.name());
}

// Recorded as of another user. Jobs of old journals have no owner.
bool is_others(const std::string& recorded, const std::string& owner) {
  return !recorded.empty() && recorded != owner;
}

// The end of the sentence for `owner`, who wants the name of `other`.
std::string way_out(const JobRecord& other, const std::string& owner, std::string_view cancel) {
  return is_others(other.owner, owner)
             ? fmt::format(
                   "it is of user '{}': choose another name, or ask '{}' or an operator to "
                   "cancel it",
                   other.owner, other.owner)
             : fmt::format("choose another name, or `muster cancel {}` first", cancel);
}

std::string taken_by_chain(const JobRecord& live, const std::string& owner) {
  const v1::StageSpec& stage = live.spec.stage();
  return fmt::format("the name '{}' is taken by chain '{}', whose stage '{}' ({}) is {}; {}",
                     stage.chain_name(), stage.chain_name(), stage.name(), live.id.str(),
                     to_string(live.phase), way_out(live, owner, stage.chain_name()));
}

// Live jobs and live chains share one set of names, so that a name has one meaning.
std::optional<Error> refuse_chain_name(const Ledger& ledger, const v1::JobSpec& first,
                                       const std::string& owner) {
  if (!first.has_stage()) return std::nullopt;
  const std::string& chain = first.stage().chain_name();
  const std::string doing = fmt::format("submitting chain '{}': ", chain);
  if (const auto taken = ledger.indexes.live_names.find(chain);
      taken != ledger.indexes.live_names.end()) {
    const JobRecord& other = ledger.jobs.at(taken->second);
    return Error{ErrorCode::Conflict,
                 fmt::format("{}the name '{}' is taken by {}, which is {}; {}", doing, chain,
                             display_name(other), to_string(other.phase),
                             way_out(other, owner, taken->second.str()))};
  }
  if (const JobRecord* stage = live_stage(ledger, chain))
    return Error{ErrorCode::Conflict, doing + taken_by_chain(*stage, owner)};
  return std::nullopt;
}

std::optional<Error> refuse_names(const Ledger& ledger, const std::vector<Submitted>& all,
                                  const std::string& owner) {
  if (auto refused = refuse_chain_name(ledger, all.front().spec, owner)) return refused;
  std::set<std::string> names;
  for (const Submitted& one : all) {
    const std::string& name = one.spec.name();
    if (!names.insert(name).second)
      return Error{ErrorCode::Conflict,
                   fmt::format("{}the name '{}' is given twice", doing_of(one.spec), name)};
    if (const auto taken = ledger.indexes.live_names.find(name);
        taken != ledger.indexes.live_names.end()) {
      const JobRecord& other = ledger.jobs.at(taken->second);
      return Error{ErrorCode::Conflict,
                   fmt::format("{}the name is taken by job '{}', which is {}; {}",
                               doing_of(one.spec), taken->second.str(), to_string(other.phase),
                               way_out(other, owner, taken->second.str()))};
    }
    if (const JobRecord* stage = live_stage(ledger, name))
      return Error{ErrorCode::Conflict, doing_of(one.spec) + taken_by_chain(*stage, owner)};
  }
  return std::nullopt;
}

bool is_of_another(const Ledger& ledger, const JobId& job, const std::string& owner) {
  const auto live = ledger.jobs.find(job);
  const auto stone = ledger.tombstones.find(job);
  const std::string recorded = live != ledger.jobs.end()          ? live->second.owner
                               : stone != ledger.tombstones.end() ? stone->second.owner
                                                                  : std::string();
  return is_others(recorded, owner);
}

// An id is used only once. The ids of a chain rise along it, so that its jobs are sorted by them.
std::optional<Error> refuse_ids(const Ledger& ledger, const std::vector<Submitted>& all) {
  const Submitted* before = nullptr;
  for (const Submitted& one : all) {
    const bool used = ledger.jobs.contains(one.job) || ledger.tombstones.contains(one.job) ||
                      (before != nullptr && one.job <= before->job);
    if (used)
      return Error{ErrorCode::Conflict, fmt::format("{}the id '{}' was used before; submit again",
                                                    doing_of(one.spec), one.job.str())};
    before = &one;
  }
  return std::nullopt;
}

std::optional<Error> refuse_queue(const Ledger& ledger, const std::vector<Submitted>& all,
                                  const Limits& limits) {
  if (ledger.indexes.queue.size() + all.size() <= limits.queued_jobs_max) return std::nullopt;
  if (all.size() == 1) {
    return Error{ErrorCode::ResourceExhausted,
                 fmt::format("{}{} jobs are queued already, as many as the limit allows; wait for "
                             "some to start, or cancel some",
                             doing_of(all.front().spec), ledger.indexes.queue.size())};
  }
  return Error{ErrorCode::ResourceExhausted,
               fmt::format("submitting chain '{}' of {} jobs: {} are queued already, and the limit "
                           "is {}; wait for some to start, or cancel some",
                           all.front().spec.stage().chain_name(), all.size(),
                           ledger.indexes.queue.size(), limits.queued_jobs_max)};
}

std::optional<Error> refuse_place(const Deciding& in, const Submitted& one) {
  JobRecord job;
  job.id = one.job;
  job.spec = one.spec;
  job.resolved = one.resolved;
  PlaceResult placed = place(in.ledger, in.presence, job, in.now, in.limits);
  if (!placed.never) return std::nullopt;
  return Error{ErrorCode::Unsatisfiable, std::move(placed.why)};
}

void cancel(const Deciding& in, const JobRecord& job, const CancelJob& input, Decision& decision) {
  if (!job.cancel_requested)
    decision.events.emplace_back(
        CancelRequested{.job = job.id, .reason = input.reason, .by = input.by});
  // If cancel was requested before, usually nothing is left to do. But if the journal was cut
  // behind the first request (an accepted loss), the rest may be missing.
  switch (job.phase) {
    case JobPhase::Queued: {
      Verdict verdict{.cls = FailureClass::Operator,
                      .reason = cancelled_text(input.by, input.reason),
                      .signature = "cancelled"};
      decision.events.emplace_back(
          JobEnded{.job = job.id, .outcome = Outcome::Cancelled, .verdict = std::move(verdict)});
      break;
    }
    case JobPhase::Launching:
    case JobPhase::Running:
    case JobPhase::Completing:
      if (job.current()->state != AttemptState::Live) break;
      decision.events.emplace_back(AttemptBroke{.job = job.id,
                                                .attempt = job.current()->number,
                                                .cause = "cancel was asked for",
                                                .fault_time = in.now.wall,
                                                .detected_at = in.now.wall});
      break;
    case JobPhase::Draining:  // it stops anyway; the flag decides which phase follows
    case JobPhase::Succeeded:
    case JobPhase::Failed:
    case JobPhase::Cancelled: break;
  }
}

// Cancels all jobs that have not ended in one decision, so that none of them ends because of
// another's end. Nothing: it is no chain, or all of it has ended.
std::optional<Decision> cancel_chain(const Deciding& in, const CancelJob& input) {
  const auto chain = in.ledger.indexes.chains.find(chain_of(in.ledger, input.job));
  if (chain == in.ledger.indexes.chains.end()) return std::nullopt;
  Decision decision;
  bool any = false;
  for (const JobId& id : chain->second) {
    const auto job = in.ledger.jobs.find(id);
    if (job == in.ledger.jobs.end() || is_final(job->second.phase)) continue;
    any = true;
    cancel(in, job->second, input, decision);
  }
  return any ? std::optional(std::move(decision)) : std::nullopt;
}

}  // namespace

Decision decide_one(const Deciding& in, const SubmitJob& input) {
  if (const auto known = in.ledger.indexes.request_ids.find(input.request_id);
      !input.request_id.empty() && known != in.ledger.indexes.request_ids.end()) {
    if (is_of_another(in.ledger, known->second, input.owner))
      return refuse(ErrorCode::Conflict, doing_of(input.spec) +
                                             "its request id was used by another user; choose "
                                             "another one");
    return {.job = known->second, .repeated = true};
  }
  const std::vector<Submitted> all = all_of(input);
  for (auto refused : {refuse_names(in.ledger, all, input.owner), refuse_ids(in.ledger, all),
                       refuse_queue(in.ledger, all, in.limits)}) {
    if (refused) return refuse(refused->code, std::move(refused->message));
  }
  Decision decision;
  std::vector<PredecessorSucceeded> succeeded;
  std::set<JobId> siblings;
  for (const Submitted& one : all) {
    const std::string doing = doing_of(one.spec);
    if (auto refused = refuse_predecessors(in.ledger, input.archived, one.resolved, siblings))
      return refuse(refused->code, doing + refused->message);
    if (auto refused = refuse_start(one.spec, one.resolved))
      return refuse(refused->code, doing + refused->message);
    auto already = succeeded_already(in.ledger, input.archived, one);
    if (!already) return refuse(already.error().code, doing + already.error().message);
    if (auto refused = refuse_stores(in.ledger, one.spec, input.owner))
      return refuse(refused->code, doing + refused->message);
    if (auto refused = refuse_secrets(in.ledger, one.spec, input.owner))
      return refuse(refused->code, doing + refused->message);
    if (auto refused = refuse_place(in, one))
      return refuse(refused->code, doing + refused->message);
    decision.events.emplace_back(
        JobSubmitted{.job = one.job,
                     .request_id = siblings.empty() ? input.request_id : RequestId(),
                     .spec = one.spec,
                     .resolved = one.resolved,
                     .spec_hash = one.spec_hash,
                     .owner = input.owner});
    succeeded.insert(succeeded.end(), already->begin(), already->end());
    siblings.insert(one.job);
  }
  for (PredecessorSucceeded& one : succeeded) decision.events.emplace_back(std::move(one));
  decision.job = input.job;
  return decision;
}

Decision decide_one(const Deciding& in, const CancelJob& input) {
  if (input.whole_chain) {
    if (std::optional<Decision> whole = cancel_chain(in, input)) return *std::move(whole);
  }
  const auto found = in.ledger.jobs.find(input.job);
  const auto tombstone = in.ledger.tombstones.find(input.job);
  const bool archived = tombstone != in.ledger.tombstones.end();
  if (found == in.ledger.jobs.end() && !archived)
    return refuse(ErrorCode::NotFound,
                  fmt::format("cancelling job '{}': there is no such job", input.job.str()));
  const JobPhase phase = archived ? tombstone->second.phase : found->second.phase;
  if (is_final(phase)) {
    const std::string& name = archived ? tombstone->second.name : found->second.spec.name();
    const std::string& chain =
        archived ? tombstone->second.chain_name : found->second.spec.stage().chain_name();
    if (input.whole_chain && !chain.empty())
      return refuse(
          ErrorCode::Conflict,
          fmt::format("cancelling chain '{}': every stage of it has ended already", chain));
    return refuse(ErrorCode::Conflict,
                  fmt::format("cancelling job '{}' ({}): it has {} already", name, input.job.str(),
                              phase == JobPhase::Cancelled ? "been cancelled" : to_string(phase)));
  }
  Decision decision;
  cancel(in, found->second, input, decision);
  return decision;
}

Decision decide_one(const Deciding& in, const DeclareNodeDead& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end())
    return refuse(ErrorCode::NotFound,
                  fmt::format("declaring node '{}' dead: there is no such node", input.node.str()));
  if (found->second.dead) return nothing();
  const bool alive = is_connected(in.presence, input.node) &&
                     !is_silent(in.presence, input.node, in.now.boot, in.limits.silent_after);
  if (alive) {
    return refuse(ErrorCode::Conflict,
                  fmt::format("declaring node '{}' dead: its agent is connected and was heard just "
                              "now; stop the agent or the machine first",
                              input.node.str()));
  }
  return accept(NodeDeclaredDead{.node = input.node, .reason = input.reason, .by = input.by});
}

}  // namespace muster::core
