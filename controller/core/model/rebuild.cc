#include "controller/core/model/rebuild.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/model/named_dirs.h"
#include "controller/core/model/requirements.h"

namespace muster::core {
namespace {

class Rebuilder {
 public:
  explicit Rebuilder(const Ledger& ledger) : ledger_(ledger) {}

  Indexes run() {
    for (const auto& [name, node] : ledger_.nodes) {
      if (node.dead) made_.dead_nodes.insert(name);
    }
    for (const auto& [id, job] : ledger_.jobs) add(job);
    for (const auto& [id, stone] : ledger_.tombstones) add(stone);
    for (auto& [chain, jobs] : made_.chains) std::ranges::sort(jobs);
    for (const auto& [predecessor, jobs] : made_.dependents) {
      const auto found = ledger_.jobs.find(predecessor);
      if (found == ledger_.jobs.end() || is_final(found->second.phase))
        made_.unsettled.insert(predecessor);
    }
    return std::move(made_);
  }

 private:
  void add(const JobRecord& job) {
    if (!job.request_id.empty()) made_.request_ids[job.request_id] = job.id;
    add_chain(job.id, JobId(job.resolved.stage().chain()), job.spec.stage().chain_name());
    for (const JobId& id : job.waits_for) made_.dependents[id].insert(job.id);
    if (is_final(job.phase)) {
      if (job.open_parts == 0) made_.archivable.insert({*job.ended_at, job.id});
    } else {
      made_.live_names[job.spec.name()] = job.id;
    }
    if (job.phase == JobPhase::Queued) {
      made_.queue[job.queue_place] = job.id;
      if (job.waits_for.empty())
        made_.queue_lines[requirements_of(job.spec, job.resolved)][job.queue_place] = job.id;
    } else if (!is_final(job.phase)) {
      made_.live.insert(job.id);
    }
    bool saves = !engine::named_dirs(job.spec).save.empty();
    for (const AttemptRecord& attempt : job.attempts) {
      add(job, attempt);
      saves = saves || attempt.script_launch.has_value();
    }
    if (saves) made_.savers.insert(job.id);
  }

  void add(const Tombstone& stone) {
    if (!stone.request_id.empty()) made_.request_ids[stone.request_id] = stone.id;
    add_chain(stone.id, stone.chain, stone.chain_name);
    made_.tombstone_ages.insert({stone.ended_at, stone.id});
    if (!stone.saved.empty()) made_.savers.insert(stone.id);
  }

  void add_chain(const JobId& job, const JobId& chain, const std::string& name) {
    if (chain.empty()) return;
    made_.chains[chain].push_back(job);
    made_.chains_named.insert({name, chain});
    JobId& newest = made_.chain_names[name];
    newest = std::max(newest, chain);
  }

  void add(const JobRecord& job, const AttemptRecord& attempt) {
    const AttemptKey key{job.id, attempt.number};
    const bool ended = is_over(attempt.state);
    if (ended && !attempt.all_swept()) made_.lingering.insert(key);
    if (!ended || !attempt.parts.front().swept)
      made_.ports_reserved[{attempt.parts.front().placed.address, attempt.master_port}] = key;
    for (const NodePart& part : attempt.parts) {
      const NodeName& node = part.placed.node;
      if (!ended || !part.swept) {
        for (const std::uint32_t device : part.placed.devices)
          made_.device_holders[node][device] = key;
      }
      if (part.idle()) continue;
      NodeParts& orders = made_.node_parts[node];
      if (!part.swept) orders.unswept.insert(key);
      if (part.closed())
        orders.closed.insert({part.closed_index, key});
      else
        orders.open.insert(key);
    }
  }

  const Ledger& ledger_;
  Indexes made_;
};

std::string wrong_counter(const AttemptRecord& attempt) {
  std::size_t started = 0, swept = 0;
  std::uint32_t well = 0, exited = 0;
  for (std::size_t at = 0; at < attempt.parts.size(); ++at) {
    const NodePart& part = attempt.parts[at];
    started += part.started ? 1 : 0;
    swept += part.swept ? 1 : 0;
    exited += static_cast<std::uint32_t>(part.exits.size());
    well += static_cast<std::uint32_t>(std::ranges::count_if(
        part.exits, [](const auto& exit) { return ended_well(exit.second); }));
    const auto known = attempt.part_index.find(part.placed.node);
    if (known == attempt.part_index.end() || known->second != at) return "part_index";
  }
  if (attempt.parts_started != started) return "parts_started";
  if (attempt.parts_swept != swept) return "parts_swept";
  if (attempt.ranks_exited != exited) return "ranks_exited";
  return attempt.ranks_well == well ? "" : "ranks_well";
}

}  // namespace

Indexes rebuild(const Ledger& ledger) { return Rebuilder(ledger).run(); }

std::string wrongly_derived(const Ledger& ledger) {
  for (const auto& [id, job] : ledger.jobs) {
    std::size_t open = 0;
    for (const AttemptRecord& attempt : job.attempts) {
      if (const std::string wrong = wrong_counter(attempt); !wrong.empty())
        return fmt::format("attempt {} of job '{}': {}", attempt.number.value, id.str(), wrong);
      open += static_cast<std::size_t>(std::ranges::count_if(
          attempt.parts, [](const NodePart& part) { return !part.idle() && !part.closed(); }));
    }
    if (job.open_parts != open) return fmt::format("job '{}': open_parts", id.str());
  }
  const Indexes& now = ledger.indexes;
  const Indexes made = rebuild(ledger);
  if (now.request_ids != made.request_ids) return "request_ids";
  if (now.live_names != made.live_names) return "live_names";
  if (now.queue != made.queue) return "queue";
  if (now.queue_lines != made.queue_lines) return "queue_lines";
  if (now.dependents != made.dependents) return "dependents";
  if (now.unsettled != made.unsettled) return "unsettled";
  if (now.chains != made.chains) return "chains";
  if (now.chain_names != made.chain_names) return "chain_names";
  if (now.chains_named != made.chains_named) return "chains_named";
  if (now.device_holders != made.device_holders) return "device_holders";
  if (now.ports_reserved != made.ports_reserved) return "ports_reserved";
  if (now.live != made.live) return "live";
  if (now.lingering != made.lingering) return "lingering";
  if (now.node_parts != made.node_parts) return "node_parts";
  if (now.dead_nodes != made.dead_nodes) return "dead_nodes";
  if (now.archivable != made.archivable) return "archivable";
  if (now.tombstone_ages != made.tombstone_ages) return "tombstone_ages";
  if (now.savers != made.savers) return "savers";
  return now == made ? "" : "an index that has no name here";
}

}  // namespace muster::core
