#include "controller/core/checkpoints.h"

#include <algorithm>
#include <ranges>

#include "controller/core/spec_view.h"

namespace muster::core {

std::optional<ResumePoint> newest_checkpoint(const JobRecord& job) {
  if (!resumes(job.spec)) return std::nullopt;
  const CheckpointRecord* newest = nullptr;
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    if (checkpoint.set_aside) continue;
    if (newest == nullptr || std::pair(checkpoint.step, checkpoint.attempt) > std::pair(newest->step, newest->attempt)) newest = &checkpoint;
  }
  if (newest == nullptr) return std::nullopt;
  return ResumePoint{.attempt = newest->attempt, .step = newest->step, .path = newest->path};
}

bool accepts_checkpoints(const JobRecord& job, const AttemptRecord& attempt) {
  return &attempt == job.current() && (attempt.state != AttemptState::Ended || attempt.completed);
}

bool has_checkpoint(const JobRecord& job, AttemptNo attempt, std::int64_t step) {
  // Newest last, and the one asked for is nearly always new.
  return std::ranges::any_of(job.checkpoints | std::views::reverse,
                             [&](const CheckpointRecord& known) { return known.attempt == attempt && known.step == step; });
}

std::int64_t best_step_of(const Presence& presence, const JobRecord& job, const AttemptRecord& attempt) {
  std::int64_t best = attempt.first_step.value_or(-1);
  if (const auto seen = presence.attempts.find({job.id, attempt.number}); seen != presence.attempts.end()) best = std::max(best, seen->second.best_step);
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    if (checkpoint.attempt == attempt.number) best = std::max(best, checkpoint.step);
  }
  return best;
}

bool CheckpointSeen::complete() const {
  if (!sealed || expected == 0 || shards.size() < expected) return false;
  return std::ranges::all_of(shards, [](const auto& shard) { return shard.second.finished; });
}

}  // namespace muster::core
