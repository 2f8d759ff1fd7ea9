#include "tests/sim/book.h"

#include <fmt/format.h>

#include <utility>

#include "controller/core/model/fact.h"

namespace muster::sim {
namespace {

std::string key(const std::string& job, std::uint32_t attempt, const std::string& node,
                std::string_view kind, std::string_view rank = "") {
  return fmt::format("{}.{} {} {} {}", job, attempt, node, kind, rank);
}

std::string upload_text(const v1::OutputsUploaded& uploaded) {
  if (uploaded.logs()) return "logs";
  if (!uploaded.has_step()) return {};
  return fmt::format("{}{}", uploaded.step(), uploaded.seal() ? " seal" : "");
}

}  // namespace

std::string natural_key(const NodeName& node, const v1::Fact& fact) {
  switch (fact.what_case()) {
    case v1::Fact::kStarted: return key(fact.job_id(), fact.attempt(), node.str(), "started");
    case v1::Fact::kStartFailed:
      return key(fact.job_id(), fact.attempt(), node.str(), "start-failed");
    case v1::Fact::kExited:
      return key(fact.job_id(), fact.attempt(), node.str(), "exited",
                 std::to_string(fact.exited().rank()));
    case v1::Fact::kSwept: return key(fact.job_id(), fact.attempt(), node.str(), "swept");
    // once for each attempt, whichever node reports it
    case v1::Fact::kFirstStep: return key(fact.job_id(), fact.attempt(), "", "first-step");
    case v1::Fact::kAuxiliaryExited:
      return key(fact.job_id(), fact.attempt(), node.str(), "auxiliary-exited",
                 fact.auxiliary_exited().name());
    // the same
    case v1::Fact::kScriptLaunched:
      return key(fact.job_id(), fact.attempt(), "", "script-launched");
    case v1::Fact::kNodeClockSkewed:
      return key(fact.job_id(), fact.attempt(), node.str(), "clock-skewed");
    case v1::Fact::kOutputsUploaded:
      return key(fact.job_id(), fact.attempt(), node.str(), "outputs-uploaded",
                 upload_text(fact.outputs_uploaded()));
    case v1::Fact::WHAT_NOT_SET: break;
  }
  return {};
}

std::string natural_key(const core::EventBody& body) {
  if (const auto* it = std::get_if<core::NodeStarted>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "started");
  if (const auto* it = std::get_if<core::NodeStartFailed>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "start-failed");
  if (const auto* it = std::get_if<core::RankExited>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "exited",
               std::to_string(it->rank.value));
  if (const auto* it = std::get_if<core::NodeSwept>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "swept");
  if (const auto* it = std::get_if<core::FirstStep>(&body))
    return key(it->job.str(), it->attempt.value, "", "first-step");
  if (const auto* it = std::get_if<core::ScriptLaunched>(&body))
    return key(it->job.str(), it->attempt.value, "", "script-launched");
  if (const auto* it = std::get_if<core::NodeClockSkewed>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "clock-skewed");
  if (const auto* it = std::get_if<core::OutputsUploaded>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "outputs-uploaded",
               upload_text(core::fact_of(*it).outputs_uploaded()));
  if (const auto* it = std::get_if<core::AuxiliaryExited>(&body))
    return key(it->job.str(), it->attempt.value, it->node.str(), "auxiliary-exited", it->name);
  return {};
}

bool Book::is_broken(const agent::RunKey& run) const {
  const auto job = durable.find(run.first);
  if (job == durable.end()) return false;
  const auto attempt = job->second.attempts.find(run.second);
  return attempt != job->second.attempts.end() && (attempt->second.broke || attempt->second.ended);
}

bool Book::has_exited(const agent::RunKey& run, const NodeName& node) const {
  const auto job = durable.find(run.first);
  if (job == durable.end()) return false;
  const auto attempt = job->second.attempts.find(run.second);
  if (attempt == job->second.attempts.end()) return false;
  const auto part =
      std::ranges::find(attempt->second.nodes, node, [](const auto& one) { return one.node; });
  if (part == attempt->second.nodes.end()) return false;
  for (std::uint32_t local = 0; local < part->rank_count; ++local) {
    const std::string rank = std::to_string(part->first_rank.value + local);
    if (!facts.contains(key(run.first.str(), run.second.value, node.str(), "exited", rank)))
      return false;
  }
  return true;
}

AttemptNo Book::newest_execd(const JobId& job) const {
  AttemptNo newest;
  for (auto it = attempts.lower_bound({job, AttemptNo(0)});
       it != attempts.end() && it->first.first == job; ++it) {
    if (it->second.first_exec) newest = it->first.second;
  }
  return newest;
}

void Book::take(const std::vector<core::Event>& events, Time now) {
  for (const core::Event& event : events) {
    if (std::string fact = natural_key(event.body); !fact.empty()) facts.insert(std::move(fact));
    if (const auto* it = std::get_if<core::JobSubmitted>(&event.body)) {
      durable[it->job].request = it->request_id;
      Submission& submission = submissions[it->job];
      submission.name = it->spec.name();
      submission.after.clear();
      for (const std::string& id : it->resolved.after()) submission.after.emplace_back(id);
      if (it->spec.has_stage()) {
        Chain& chain = chains[JobId(it->resolved.stage().chain())];
        chain.jobs.insert(it->job);
        chain.count = it->spec.stage().count();
      }
    }
    if (const auto* it = std::get_if<core::CancelRequested>(&event.body))
      durable[it->job].cancel = true;
    if (const auto* it = std::get_if<core::AttemptPlaced>(&event.body)) {
      DurableAttempt& attempt = durable[it->job].attempts[it->attempt];
      attempt.nodes = it->nodes;
      attempt.placed_at = now;
      once_placed.insert({it->job, it->attempt});
    }
    if (const auto* it = std::get_if<core::AttemptBroke>(&event.body)) {
      durable[it->job].attempts[it->attempt].broke = true;
      once_broken.insert({it->job, it->attempt});
    }
    if (const auto* it = std::get_if<core::AttemptEnded>(&event.body))
      durable[it->job].attempts[it->attempt].ended = true;
    if (const auto* it = std::get_if<core::AttemptCompleted>(&event.body))
      durable[it->job].attempts[it->attempt].ended = true;
    if (const auto* it = std::get_if<core::JobEnded>(&event.body)) {
      durable[it->job].outcome = it->outcome;
      if (it->outcome == core::Outcome::Succeeded) once_succeeded.insert(it->job);
    }
    if (const auto* it = std::get_if<core::JobArchived>(&event.body))
      durable[it->job].archived = true;
  }
}

void Book::forget_all_but(const std::vector<core::Event>& left) {
  std::map<JobId, DurableJob> before;
  durable.swap(before);
  const auto is_archived = [&](const JobId& id) {
    return before.contains(id) && before.at(id).archived;
  };
  std::erase_if(facts, [&](const std::string& key) {
    return !is_archived(JobId(key.substr(0, key.find('.'))));
  });
  const std::map<JobId, Chain> whole = std::exchange(chains, {});
  for (const core::Event& event : left) take({event}, 0);
  for (const auto& [id, chain] : whole) {
    // Archived jobs of the chain have no rows among the remaining ones.
    for (const JobId& job : chain.jobs) {
      if (is_archived(job)) {
        chains[id].jobs.insert(job);
        chains[id].count = chain.count;
      }
    }
    if (chains.contains(id) && chains.at(id).jobs.size() < chain.count) chains_cut.insert(id);
  }
  for (auto& [id, job] : before) {
    if (job.archived) durable[id] = std::move(job);
  }
  for (auto& [id, job] : durable) {
    if (job.archived) continue;
    for (auto& [number, attempt] : job.attempts)
      attempt.placed_at = before.at(id).attempts.at(number).placed_at;
  }
  std::erase_if(acked, [&](const std::string& key) { return !facts.contains(key); });
  std::erase_if(replied, [&](const auto& entry) { return !durable.contains(entry.second); });
}

}  // namespace muster::sim
