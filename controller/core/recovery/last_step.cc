#include "controller/core/recovery/last_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "controller/core/model/spec_view.h"

namespace muster::core {
namespace {

bool end_seen(const AttemptRecord& attempt) {
  return std::ranges::any_of(attempt.parts, [](const NodePart& part) {
    return std::ranges::any_of(part.exits,
                               [](const auto& exit) { return exit.second.success_seen; });
  });
}

std::int64_t total_reported(const AttemptRecord& attempt) {
  std::int64_t total = 0;
  for (const NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) total = std::max(total, exit.total.value_or(0));
  }
  return total;
}

// The total number of steps. 0: no log has it. This attempt's own total comes first: the training
// data may have changed.
std::int64_t total_of(const JobRecord& job, const AttemptRecord& attempt) {
  if (const std::int64_t own = total_reported(attempt); own > 0) return own;
  for (const AttemptRecord& earlier : job.attempts | std::views::reverse) {
    if (const std::int64_t total = total_reported(earlier); total > 0) return total;
  }
  return 0;
}

}  // namespace

std::int64_t last_step_reported(const AttemptRecord& attempt) {
  std::int64_t step = -1;
  for (const NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) step = std::max(step, exit.step.value_or(-1));
  }
  return step;
}

std::string last_step_missing(const JobRecord& job, const AttemptRecord& attempt) {
  if (end_seen(attempt)) return {};
  const std::int64_t total = total_of(job, attempt), reported = last_step_reported(attempt);
  std::int64_t saved = -1, best = -1;
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    if (checkpoint.attempt == attempt.number) saved = std::max(saved, checkpoint.step);
    if (!checkpoint.quarantined) best = std::max(best, checkpoint.step);
  }
  // For a start with weights alone, the step belongs to another training.
  if (attempt.resume && (!attempt.resume->from_start || goes_on_from_start(job.spec)))
    best = std::max(best, attempt.resume->step);
  if (total > 0 && std::max(best, reported) >= total) return {};
  if (const std::int64_t step = std::max(reported, saved); step >= 0) {
    if (total > 0)
      return fmt::format(
          "every rank ended with status 0 after step {} of {}: the training did not reach its last "
          "step",
          step, total);
    if (reported < 0) return {};  // it has saved, and prints nothing that muster can read
    return fmt::format(
        "every rank ended with status 0 after step {}, and no line reports how many there are; if "
        "its lines are of another form give observe.progress with a total, or success: exit0 to "
        "take the status alone",
        step);
  }
  return "every rank ended with status 0, and no step line was seen; if its lines are of another "
         "form give observe.progress, or success: exit0 to take the status alone";
}

}  // namespace muster::core
