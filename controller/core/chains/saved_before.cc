#include "controller/core/chains/saved_before.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

#include "common/engine/model/named_dirs.h"

namespace muster::core {
namespace {

constexpr std::size_t kShardPathMax = 4096;

bool has_any(const std::vector<SavedBefore>& saved) {
  return !saved.empty() && !saved.front().path.empty();
}

}  // namespace

bool can_be_passed_on(std::string_view path) {
  return path.starts_with('/') && path.size() < kShardPathMax &&
         std::ranges::none_of(
             path, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::vector<SavedBefore> saved_by(const JobRecord& job) {
  // If attempts differ, the directory of the last one counts.
  std::string named;
  for (const AttemptRecord& attempt : job.attempts)
    if (attempt.script_launch) named = attempt.script_launch->save;
  if (named.empty()) named = engine::named_dirs(job.spec).save;
  if (!can_be_passed_on(named)) return {};
  std::map<std::int64_t, const CheckpointRecord*> by_step;
  for (const CheckpointRecord& one : job.checkpoints) {
    if ((one.quarantined && !one.weights_alone) || !can_be_passed_on(one.path)) continue;
    const CheckpointRecord*& known = by_step[one.step];
    if (known == nullptr || known->attempt < one.attempt) known = &one;
  }
  std::vector<SavedBefore> saved;
  for (const auto& [step, one] : by_step | std::views::reverse) {
    saved.push_back({.named_dir = named, .job = job.id, .path = one->path, .step = step});
    if (saved.size() == kSavedCheckpointsMax) break;
  }
  if (saved.empty()) saved.push_back({.named_dir = named, .job = job.id, .path = {}, .step = 0});
  return saved;
}

std::map<std::string, std::vector<SavedBefore>> saved_by_dir(const Ledger& ledger,
                                                             WallTime ended_by) {
  std::map<std::string, std::vector<SavedBefore>> by_dir;
  for (const JobId& id : ledger.indexes.savers | std::views::reverse) {
    std::vector<SavedBefore> saved;
    if (const auto live = ledger.jobs.find(id); live != ledger.jobs.end()) {
      if (!live->second.ended_at || *live->second.ended_at > ended_by) continue;
      saved = saved_by(live->second);
    } else if (const auto gone = ledger.tombstones.find(id);
               gone != ledger.tombstones.end() && gone->second.ended_at <= ended_by) {
      saved = gone->second.saved;
    }
    if (saved.empty()) continue;
    const auto known = by_dir.find(saved.front().named_dir);
    if (known == by_dir.end() && by_dir.size() == kSavedDirsMax) continue;
    if (known == by_dir.end() || (!has_any(known->second) && has_any(saved)))
      by_dir[saved.front().named_dir] = std::move(saved);
  }
  return by_dir;
}

std::vector<SavedBefore> saved_before(const Ledger& ledger, const JobRecord& job) {
  if (job.spec.launch().per() != v1::LAUNCH_PER_NODE || !job.spec.launch().intercept()) return {};
  std::vector<SavedBefore> all;
  for (auto& [dir, saved] : saved_by_dir(ledger, job.submitted_at))
    std::ranges::copy(saved, std::back_inserter(all));
  return all;
}

}  // namespace muster::core
