#include "controller/core/chains/start_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::core {
namespace {

constexpr std::string_view kStage = "stage:";

}  // namespace

std::optional<ResumePoint> known_start(const v1::ResolvedSpec& resolved) {
  if (!resolved.start().has_point()) return std::nullopt;
  const v1::StartPoint& point = resolved.start().point();
  return ResumePoint{.attempt = AttemptNo(point.attempt()),
                     .step = point.step(),
                     .path = point.path(),
                     .from_start = true};
}

std::optional<JobId> starts_behind(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved) {
  const std::string_view from = spec.start().from();
  if (resolved.start().has_point() || !from.starts_with(kStage)) return std::nullopt;
  const std::string_view stage = from.substr(kStage.size());
  for (const v1::StageDir& dir : resolved.stage().dirs()) {
    if (dir.stage() == stage) return JobId(dir.job());
  }
  return std::nullopt;  // a path below the stage's ${out}: it is known before the stage has run
}

StageStart start_behind(const v1::JobSpec& spec, const std::string& stage_name,
                        const JobRecord* stage) {
  const v1::StartSpec& start = spec.start();
  const CheckpointRecord* newest = nullptr;
  if (stage != nullptr) {
    for (const CheckpointRecord& checkpoint : stage->checkpoints) {
      // A step that is requested by its number counts, even if quarantined. But a job cannot resume
      // from a checkpoint with weights alone.
      const bool weights = checkpoint.weights_alone && start.as() == v1::START_AS_WEIGHTS;
      if (checkpoint.weights_alone && !weights) continue;
      if (start.has_step() ? checkpoint.step != start.step() : checkpoint.quarantined && !weights)
        continue;
      if (newest == nullptr ||
          std::pair(checkpoint.step, checkpoint.attempt) > std::pair(newest->step, newest->attempt))
        newest = &checkpoint;
    }
  }
  if (newest != nullptr) {
    return {.checkpoint = ResumePoint{.attempt = newest->attempt,
                                      .step = newest->step,
                                      .path = newest->path,
                                      .from_start = true,
                                      .shards = newest->shards}};
  }
  if (start.as() == v1::START_AS_RESUME_OR_SCRATCH) return {};
  const std::string what =
      stage == nullptr ? "is archived, and its checkpoints are not known here any more"
                       : "has succeeded without a whole checkpoint" +
                             (start.has_step() ? fmt::format(" of step {}", start.step()) : "");
  const std::string remedy =
      start.as() == v1::START_AS_RESUME
          ? "write start.as: resume-or-scratch to begin anew where there is none"
          : fmt::format("name the directory that holds its weights (start.from: {}/DIR)",
                        start.from());
  return {.missing = fmt::format("start.from: {} {}; {}, or have that stage save one", stage_name,
                                 what, remedy)};
}

OwnedShards owned_shards(const JobRecord& job, const AttemptRecord& attempt) {
  OwnedShards owned{.attempt = attempt.number, .holders = {}};
  const bool one = job.spec.launch().per() == v1::LAUNCH_PER_ONCE;
  for (const NodePart& part : attempt.parts) {
    if (part.idle()) continue;
    owned.holders.push_back({.node = part.placed.node,
                             .first_rank = part.placed.first_rank,
                             .ranks = one ? 0 : part.placed.rank_count});
  }
  return owned;
}

std::optional<Error> refuse_start(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved) {
  if (const auto stage = starts_behind(spec, resolved)) {
    const auto& after = resolved.after();
    if (std::ranges::find(after, stage->str()) != after.end()) return std::nullopt;
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("start.from is '{}', and schedule.after does not name that stage",
                             spec.start().from())};
  }
  if (spec.start().as() != v1::START_AS_RESUME || spec.start().from().empty() ||
      resolved.start().has_point())
    return std::nullopt;
  return Error{ErrorCode::Unsatisfiable,
               fmt::format("start.from: no whole checkpoint of '{}' is known, and start.as is "
                           "resume; write start.as: resume-or-scratch to begin anew where there is "
                           "none",
                           spec.start().from())};
}

}  // namespace muster::core
