#include "controller/api/chain_view.h"

#include <algorithm>
#include <ranges>

#include "controller/api/convert.h"

namespace muster::controller {
namespace {

struct StageSeen {
  JobId id;
  core::JobPhase phase{};
  bool begun = false;        // it has had an attempt; if queued, it waits for the next one
  bool consequence = false;  // it ended because of another job's end
};

std::vector<StageSeen> seen(const core::Ledger& ledger, const JobId& chain) {
  std::vector<StageSeen> stages;
  const auto found = ledger.indexes.chains.find(chain);
  if (found == ledger.indexes.chains.end()) return stages;
  for (const JobId& id : found->second) {
    if (const auto job = ledger.jobs.find(id); job != ledger.jobs.end()) {
      const std::optional<core::Verdict>& verdict = job->second.verdict;
      stages.push_back({.id = id,
                        .phase = job->second.phase,
                        .begun = !job->second.attempts.empty(),
                        .consequence = verdict && verdict->signature == "predecessor"});
    } else if (const auto stone = ledger.tombstones.find(id); stone != ledger.tombstones.end()) {
      stages.push_back({.id = id, .phase = stone->second.phase});
    }
  }
  return stages;
}

bool runs(const StageSeen& stage) {
  return !core::is_final(stage.phase) && (stage.phase != core::JobPhase::Queued || stage.begun);
}

// CHAIN.STAGE
std::string stage_name(const std::string& job, const std::string& chain) {
  return job.substr(std::min(chain.size() + 1, job.size()));
}

}  // namespace

std::vector<v1::ChainStage> chain_stages(const core::Ledger& ledger, const JobId& chain) {
  std::vector<v1::ChainStage> stages;
  for (const StageSeen& one : seen(ledger, chain)) {
    v1::ChainStage& stage = stages.emplace_back();
    if (const auto job = ledger.jobs.find(one.id); job != ledger.jobs.end()) {
      stage.set_stage(job->second.spec.stage().name());
    } else {
      const core::Tombstone& stone = ledger.tombstones.at(one.id);
      stage.set_stage(stage_name(stone.name, stone.chain_name));
    }
    stage.set_job_id(one.id.str());
    stage.set_phase(to_v1(one.phase));
  }
  return stages;
}

JobId stage_that_matters(const core::Ledger& ledger, const JobId& chain) {
  const std::vector<StageSeen> stages = seen(ledger, chain);
  const auto first = [&](auto holds) -> const StageSeen* {
    const auto found = std::ranges::find_if(stages, holds);
    return found == stages.end() ? nullptr : &*found;
  };
  if (const StageSeen* one = first(runs)) return one->id;
  if (const StageSeen* one =
          first([](const StageSeen& stage) { return stage.phase == core::JobPhase::Failed; }))
    return one->id;
  if (const StageSeen* one = first([](const StageSeen& stage) {
        return stage.phase == core::JobPhase::Cancelled && !stage.consequence;
      }))
    return one->id;
  if (const StageSeen* one =
          first([](const StageSeen& stage) { return !core::is_final(stage.phase); }))
    return one->id;
  return stages.empty() ? JobId() : stages.back().id;
}

bool is_live_chain(const core::Ledger& ledger, const JobId& chain) {
  return std::ranges::any_of(seen(ledger, chain),
                             [](const StageSeen& stage) { return !core::is_final(stage.phase); });
}

}  // namespace muster::controller
