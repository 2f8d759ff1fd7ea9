#include "controller/core/chains/chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace muster::core {

void join_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name) {
  if (chain.empty()) return;
  std::vector<JobId>& jobs = ledger.indexes.chains[chain];
  const auto place = std::ranges::lower_bound(jobs, job);
  if (place != jobs.end() && *place == job) return;
  jobs.insert(place, job);
  ledger.indexes.chains_named.insert({name, chain});
  JobId& newest = ledger.indexes.chain_names[name];
  newest = std::max(newest, chain);
}

void leave_chain(Ledger& ledger, const JobId& job, const JobId& chain, const std::string& name) {
  const auto found = ledger.indexes.chains.find(chain);
  if (found == ledger.indexes.chains.end()) return;
  std::erase(found->second, job);
  if (!found->second.empty()) return;
  ledger.indexes.chains.erase(found);
  ledger.indexes.chains_named.erase({name, chain});
  if (ledger.indexes.chain_names[name] != chain) return;
  // The previous chain with this name, if there is one.
  const auto next = ledger.indexes.chains_named.lower_bound({name, chain});
  if (next != ledger.indexes.chains_named.begin() && std::prev(next)->first == name) {
    ledger.indexes.chain_names[name] = std::prev(next)->second;
  } else {
    ledger.indexes.chain_names.erase(name);
  }
}

const JobRecord* live_stage(const Ledger& ledger, const std::string& chain_name) {
  const auto chain = ledger.indexes.chain_names.find(chain_name);
  if (chain == ledger.indexes.chain_names.end()) return nullptr;
  for (const JobId& id : ledger.indexes.chains.at(chain->second)) {
    const auto job = ledger.jobs.find(id);
    if (job != ledger.jobs.end() && !is_final(job->second.phase)) return &job->second;
  }
  return nullptr;
}

JobId chain_of(const Ledger& ledger, const JobId& job) {
  if (const auto found = ledger.jobs.find(job); found != ledger.jobs.end())
    return JobId(found->second.resolved.stage().chain());
  if (const auto stone = ledger.tombstones.find(job); stone != ledger.tombstones.end())
    return stone->second.chain;
  return {};
}

std::string display_name(const JobId& id, const std::string& name, const std::string& chain_name) {
  if (name.empty()) return fmt::format("job '{}'", id.str());
  if (!chain_name.empty() && name.size() > chain_name.size() + 1 && name.starts_with(chain_name))
    return fmt::format("stage '{}' of chain '{}' ({})", name.substr(chain_name.size() + 1),
                       chain_name, id.str());
  return fmt::format("job '{}' ({})", name, id.str());
}

std::string display_name(const JobRecord& job) {
  return display_name(job.id, job.spec.name(), job.spec.stage().chain_name());
}

}  // namespace muster::core
