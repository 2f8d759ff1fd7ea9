#include "controller/core/chains/predecessors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controller/core/chains/chains.h"
#include "controller/core/chains/start_point.h"
#include "controller/core/model/queue.h"

namespace muster::core {
namespace {

// Limit for the sentence of another job that is repeated in each job behind it.
constexpr std::size_t kCauseBytesMax = 512;

// Cuts between whole characters of UTF-8.
std::string cut_cause(std::string text) {
  if (text.size() <= kCauseBytesMax) return text;
  std::size_t end = kCauseBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

// "failed: rank 0 on node 'n0' ended with status 1", "was cancelled: wrong data".
std::string how_it_ended(JobPhase phase, const std::optional<Verdict>& verdict) {
  std::string reason = verdict ? verdict->reason : "";
  if (phase != JobPhase::Cancelled)
    return cut_cause(reason.empty() ? "failed" : "failed: " + reason);
  if (reason == "cancelled") reason.clear();
  if (reason.starts_with("cancelled by ")) return cut_cause("was " + reason);
  if (reason.starts_with("cancelled: ")) reason.erase(0, std::string_view("cancelled: ").size());
  return cut_cause(reason.empty() ? "was cancelled" : "was cancelled: " + reason);
}

JobEnded ended_behind(const JobId& job, FailureClass cls, std::string reason) {
  return {.job = job,
          .outcome = Outcome::Cancelled,
          .verdict = Verdict{.cls = cls, .reason = std::move(reason), .signature = "predecessor"}};
}

// What the success of job `predecessor`, with the display name `who`, means for a job that waits
// for it. `ended` nullptr: it is archived.
EventBody succeeded_before(const Submitted& one, const JobId& predecessor, const std::string& who,
                           const JobRecord* ended) {
  PredecessorSucceeded event{.job = one.job, .predecessor = predecessor};
  if (ended != nullptr && one.spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL &&
      ended->current() != nullptr)
    event.owned = owned_shards(*ended, *ended->current());
  if (starts_behind(one.spec, one.resolved) != predecessor) return event;
  StageStart start = start_behind(one.spec, who, ended);
  if (start.missing.empty()) {
    event.checkpoint = std::move(start.checkpoint);
    return event;
  }
  return JobEnded{.job = one.job,
                  .outcome = Outcome::Cancelled,
                  .verdict = Verdict{.cls = FailureClass::UserError,
                                     .reason = std::move(start.missing),
                                     .signature = "no start"}};
}

// The cause of the first of the jobs that ended without success in one decision. The jobs behind it
// name this cause, and do not repeat the whole sequence of ends.
struct EndCause {
  FailureClass cls = FailureClass::Operator;
  std::string how;  // "failed: ...": how this job ended
  // ", because job 'a' (id) failed: ...": the cause of another job's end. Empty: this job is the
  // first.
  std::string because;
};

class Follower {
 public:
  Follower(const Ledger& ledger, Decision& decision) : ledger_(ledger), decision_(decision) {}

  void run() {
    for (const EventBody& body : decision_.events) {
      if (const auto* ended = std::get_if<JobEnded>(&body)) ended_.insert(ended->job);
    }
    if (ended_.empty()) return;
    // The list grows in the loop: jobs may also wait for those that end now.
    for (std::size_t at = 0; at < decision_.events.size(); ++at) {
      if (const auto* ended = std::get_if<JobEnded>(&decision_.events[at]))
        follow(JobEnded(*ended));
    }
  }

 private:
  void follow(const JobEnded& ended) {
    const auto waiting = ledger_.indexes.dependents.find(ended.job);
    if (waiting == ledger_.indexes.dependents.end()) return;
    for (const JobId& id : waiting->second) {
      if (ended.outcome == Outcome::Succeeded) {
        succeed(ended.job, id);
      } else if (ended_.insert(id).second) {
        end_with(ended, id);
      }
    }
  }

  void succeed(const JobId& predecessor, const JobId& id) {
    const JobRecord& before = ledger_.jobs.at(predecessor);
    EventBody result = succeeded_before(submitted(ledger_.jobs.at(id)), predecessor,
                                        display_name(before), &before);
    if (std::holds_alternative<JobEnded>(result)) ended_.insert(id);
    decision_.events.emplace_back(std::move(result));
  }

  void end_with(const JobEnded& ended, const JobId& id) {
    const std::string who = display_name(ledger_.jobs.at(ended.job));
    const auto known = causes_.find(ended.job);
    const EndCause cause = known != causes_.end() ? known->second : first_cause(ended);
    decision_.events.emplace_back(
        ended_behind(id, cause.cls,
                     fmt::format("{}, which it waited for, {}{}", who, cause.how, cause.because)));
    std::string because =
        cause.because.empty() ? fmt::format(", because {} {}", who, cause.how) : cause.because;
    causes_.emplace(
        id, EndCause{.cls = cause.cls, .how = "was cancelled", .because = std::move(because)});
  }
  static EndCause first_cause(const JobEnded& ended) {
    const JobPhase phase =
        ended.outcome == Outcome::Cancelled ? JobPhase::Cancelled : JobPhase::Failed;
    return {.cls = ended.verdict ? ended.verdict->cls : FailureClass::Operator,
            .how = how_it_ended(phase, ended.verdict),
            .because = ""};
  }

  const Ledger& ledger_;
  Decision& decision_;
  std::set<JobId> ended_;
  std::map<JobId, EndCause> causes_;
};

std::string standing_text(const Ledger& ledger, const Presence& presence, const JobId& id) {
  const auto found = ledger.jobs.find(id);
  if (found == ledger.jobs.end()) return display_name(id, "", "");
  const JobRecord& job = found->second;
  std::string text = fmt::format("{}, which is {}", display_name(job), to_string(job.phase));
  if (!job.waits_for.empty()) return text + " behind others";
  if (job.current() == nullptr || is_final(job.phase)) return text;
  const auto seen = presence.attempts.find({id, job.current()->number});
  if (seen == presence.attempts.end()) return text;
  const auto result = std::ranges::find_if(seen->second.ranks,
                                           [](const auto& rank) { return rank.second.step >= 0; });
  if (result == seen->second.ranks.end()) return text;
  text += fmt::format(", step {}", result->second.step);
  if (result->second.total > 0) text += fmt::format(" of {}", result->second.total);
  return text;
}

}  // namespace

void await_predecessors(Ledger& ledger, JobRecord& job) {
  for (const std::string& named : job.resolved.after()) {
    const JobId id(named);
    job.waits_for.insert(id);
    ledger.indexes.dependents[id].insert(job.id);
    const auto known = ledger.jobs.find(id);
    if (known == ledger.jobs.end() || is_final(known->second.phase))
      ledger.indexes.unsettled.insert(id);
  }
}

void predecessor_succeeded(Ledger& ledger, JobRecord& job, const JobId& predecessor) {
  if (job.waits_for.erase(predecessor) == 0) return;
  const auto waiting = ledger.indexes.dependents.find(predecessor);
  waiting->second.erase(job.id);
  if (waiting->second.empty()) {
    ledger.indexes.dependents.erase(waiting);
    ledger.indexes.unsettled.erase(predecessor);
  }
  if (job.waits_for.empty() && job.phase == JobPhase::Queued) join_line(ledger, job);
}

void await_nobody(Ledger& ledger, JobRecord& job) {
  for (const JobId& id : std::exchange(job.waits_for, {})) {
    const auto waiting = ledger.indexes.dependents.find(id);
    waiting->second.erase(job.id);
    if (!waiting->second.empty()) continue;
    ledger.indexes.dependents.erase(waiting);
    ledger.indexes.unsettled.erase(id);
  }
}

void ended_or_gone(Ledger& ledger, const JobId& job) {
  if (ledger.indexes.dependents.contains(job)) ledger.indexes.unsettled.insert(job);
}

void follow_ends(const Ledger& ledger, Decision& decision) { Follower(ledger, decision).run(); }

std::optional<Predecessor> find_predecessor(const Ledger& ledger,
                                            const std::map<JobId, ArchivedEnd>& archived,
                                            const JobId& id) {
  if (const auto job = ledger.jobs.find(id); job != ledger.jobs.end())
    return Predecessor{.name = job->second.spec.name(),
                       .phase = job->second.phase,
                       .job = &job->second,
                       .chain_name = job->second.spec.stage().chain_name()};
  if (const auto stone = ledger.tombstones.find(id); stone != ledger.tombstones.end())
    return Predecessor{.name = stone->second.name,
                       .phase = stone->second.phase,
                       .chain_name = stone->second.chain_name};
  if (const auto end = archived.find(id); end != archived.end())
    return Predecessor{.name = end->second.name, .phase = end->second.phase};
  return std::nullopt;
}

std::optional<Error> refuse_predecessors(const Ledger& ledger,
                                         const std::map<JobId, ArchivedEnd>& archived,
                                         const v1::ResolvedSpec& resolved,
                                         const std::set<JobId>& siblings) {
  for (const std::string& named : resolved.after()) {
    const JobId id(named);
    if (siblings.contains(id)) continue;
    const auto found = find_predecessor(ledger, archived, id);
    if (!found)
      return Error{
          ErrorCode::NotFound,
          fmt::format("schedule.after names job '{}', and there is none; `muster ps -a` lists them",
                      named)};
    if (!is_final(found->phase) || found->phase == JobPhase::Succeeded) continue;
    return Error{
        ErrorCode::Unsatisfiable,
        fmt::format("schedule.after names {}, which {}; nothing can succeed behind it any more: "
                    "run it again and name that job, or leave it out",
                    display_name(id, found->name, found->chain_name),
                    how_it_ended(found->phase,
                                 found->job == nullptr ? std::nullopt : found->job->verdict))};
  }
  return std::nullopt;
}

Result<std::vector<PredecessorSucceeded>> succeeded_already(
    const Ledger& ledger, const std::map<JobId, ArchivedEnd>& archived, const Submitted& one) {
  std::vector<PredecessorSucceeded> all;
  const auto& after = one.resolved.after();
  for (const std::string& named : std::set<std::string>(after.begin(), after.end())) {
    const JobId id(named);
    const auto found = find_predecessor(ledger, archived, id);
    if (!found || !is_final(found->phase)) continue;
    const EventBody result =
        succeeded_before(one, id, display_name(id, found->name, found->chain_name), found->job);
    if (const auto* without = std::get_if<JobEnded>(&result))
      return fail(ErrorCode::Unsatisfiable, without->verdict->reason);
    all.push_back(std::get<PredecessorSucceeded>(result));
  }
  return all;
}

std::vector<std::string> waits_for_text(const Ledger& ledger, const Presence& presence,
                                        const std::set<JobId>& predecessors) {
  std::vector<std::string> lines;
  for (const JobId& id : predecessors) {
    if (lines.size() == kPredecessorsNamed) {
      lines.push_back(
          fmt::format("waits for {} more jobs", predecessors.size() - kPredecessorsNamed));
      break;
    }
    lines.push_back("waits for " + standing_text(ledger, presence, id));
  }
  return lines;
}

Decision settle(const Ledger& ledger, const JobId& predecessor) {
  const auto waiting = ledger.indexes.dependents.find(predecessor);
  if (waiting == ledger.indexes.dependents.end()) return {};
  const auto found = find_predecessor(ledger, {}, predecessor);
  if (found && !is_final(found->phase)) return {};
  const std::string who =
      display_name(predecessor, found ? found->name : "", found ? found->chain_name : "");
  Decision decision;
  for (const JobId& id : waiting->second) {
    if (found && found->phase == JobPhase::Succeeded) {
      decision.events.push_back(
          succeeded_before(submitted(ledger.jobs.at(id)), predecessor, who, found->job));
      continue;
    }
    const std::optional<Verdict> verdict =
        found && found->job != nullptr ? found->job->verdict : std::nullopt;
    const std::string how = found ? how_it_ended(found->phase, verdict)
                                  : "is not known any more: the journal has lost it";
    decision.events.emplace_back(
        ended_behind(id, verdict ? verdict->cls : FailureClass::Operator,
                     fmt::format("{}, which it waited for, {}", who, how)));
  }
  return decision;
}

}  // namespace muster::core
