#include <fmt/format.h>

#include <set>
#include <string>

#include "controller/core/decide.h"
#include "controller/core/predecessors.h"

namespace muster::core {

Decision decide_one(const Deciding& in, const SubmitJob& input) {
  if (const auto known = in.ledger.request_ids.find(input.request_id); !input.request_id.empty() && known != in.ledger.request_ids.end()) {
    return {.job = known->second, .repeated = true};
  }
  const std::string& name = input.spec.name();
  const std::string doing = fmt::format("submitting job '{}': ", name);
  if (const auto taken = in.ledger.live_names.find(name); taken != in.ledger.live_names.end()) {
    return refuse(ErrorCode::Conflict, fmt::format("{}the name is taken by job '{}', which is {}; choose another name, or `muster cancel {}` first", doing,
                                                   taken->second.str(), to_string(in.ledger.jobs.at(taken->second).phase), taken->second.str()));
  }
  if (in.ledger.jobs.contains(input.job) || in.ledger.tombstones.contains(input.job)) {
    return refuse(ErrorCode::Conflict, fmt::format("{}the id '{}' was used before; submit again", doing, input.job.str()));
  }
  if (in.ledger.queue.size() >= in.limits.queued_jobs_max) {
    return refuse(ErrorCode::ResourceExhausted, fmt::format("{}{} jobs are queued already, as many as the limit allows; wait for some to start, or cancel some",
                                                            doing, in.ledger.queue.size()));
  }
  if (auto refused = refuse_predecessors(in.ledger, input.archived, input.spec)) return refuse(refused->code, doing + refused->message);
  JobRecord job;
  job.id = input.job;
  job.spec = input.spec;
  if (PlaceResult placed = place(in.ledger, in.presence, job, in.now, in.limits); placed.never) {
    return refuse(ErrorCode::Unsatisfiable, doing + placed.why);
  }
  Decision decision = accept(JobSubmitted{.job = input.job, .request_id = input.request_id, .spec = input.spec, .spec_hash = input.spec_hash});
  const auto& after = input.spec.schedule().after();
  for (const std::string& one : std::set<std::string>(after.begin(), after.end())) {
    const JobId id(one);
    if (is_final(find_predecessor(in.ledger, input.archived, id)->phase))
      decision.events.emplace_back(PredecessorSucceeded{.job = input.job, .predecessor = id});
  }
  decision.job = input.job;
  return decision;
}

Decision decide_one(const Deciding& in, const CancelJob& input) {
  const auto found = in.ledger.jobs.find(input.job);
  const auto tombstone = in.ledger.tombstones.find(input.job);
  const bool archived = tombstone != in.ledger.tombstones.end();
  if (found == in.ledger.jobs.end() && !archived) return refuse(ErrorCode::NotFound, fmt::format("cancelling job '{}': there is no such job", input.job.str()));
  const JobPhase phase = archived ? tombstone->second.phase : found->second.phase;
  if (is_final(phase)) {
    const std::string& name = archived ? tombstone->second.name : found->second.spec.name();
    return refuse(ErrorCode::Conflict, fmt::format("cancelling job '{}' ({}): it has {} already", name, input.job.str(),
                                                   phase == JobPhase::Cancelled ? "been cancelled" : to_string(phase)));
  }
  const JobRecord& job = found->second;
  Decision decision;
  if (!job.cancel_requested) decision.events.emplace_back(CancelRequested{.job = job.id, .reason = input.reason});
  // Asked again there is nothing more to do; but of a journal that was cut behind the first asking (an accepted loss) the rest may be missing.
  switch (phase) {
    case JobPhase::Queued: {
      const std::string why = input.reason.empty() ? "" : ": " + input.reason;
      Verdict verdict{.cls = FailureClass::Operator, .reason = "cancelled" + why, .signature = "cancelled"};
      decision.events.emplace_back(JobEnded{.job = job.id, .outcome = Outcome::Cancelled, .verdict = std::move(verdict)});
      break;
    }
    case JobPhase::Launching:
    case JobPhase::Running:
    case JobPhase::Completing:
      if (job.current()->state != AttemptState::Live) break;
      decision.events.emplace_back(AttemptBroke{
          .job = job.id, .attempt = job.current()->number, .cause = "cancel was asked for", .fault_time = in.now.wall, .detected_at = in.now.wall});
      break;
    case JobPhase::Draining:  // stopping anyway; the flag decides where it goes from there
    case JobPhase::Succeeded:
    case JobPhase::Failed:
    case JobPhase::Cancelled: break;
  }
  return decision;
}

Decision decide_one(const Deciding& in, const DeclareNodeDead& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return refuse(ErrorCode::NotFound, fmt::format("declaring node '{}' dead: there is no such node", input.node.str()));
  if (found->second.dead) return nothing();
  const bool alive = is_connected(in.presence, input.node) && !is_silent(in.presence, input.node, in.now.boot, in.limits.silent_after);
  if (alive) {
    return refuse(
        ErrorCode::Conflict,
        fmt::format("declaring node '{}' dead: its agent is connected and was heard just now; stop the agent or the machine first", input.node.str()));
  }
  return accept(NodeDeclaredDead{.node = input.node, .reason = input.reason});
}

}  // namespace muster::core
