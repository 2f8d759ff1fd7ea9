#include "agent/logs/training_end.h"

#include <algorithm>

namespace muster::agent {

std::optional<bool> end_reached(const engine::LogLine& line, const engine::StepLine& latest,
                                std::int64_t covers) {
  // Unsigned, because a line may contain any number.
  const auto left = [&](std::int64_t step) -> std::optional<std::uint64_t> {
    if (latest.total <= 0 || step < 0) return std::nullopt;
    return step >= latest.total
               ? 0
               : static_cast<std::uint64_t>(latest.total) - static_cast<std::uint64_t>(step);
  };
  switch (line.kind) {
    case engine::LineKind::TrainingDone:
    case engine::LineKind::TrainingSkipped:
    case engine::LineKind::StrategySaved: return true;
    case engine::LineKind::Exiting:
      return left(std::max(line.step.step, latest.step)) == std::uint64_t{0};
    case engine::LineKind::Step: {
      const auto still = left(latest.step);
      if (still && (*still == 0 || (covers > 0 && *still < static_cast<std::uint64_t>(covers))))
        return true;
      return std::nullopt;
    }
    case engine::LineKind::EpochEnd:
      if (left(latest.step) == std::uint64_t{0}) return true;
      return std::nullopt;
    case engine::LineKind::Nothing:
    case engine::LineKind::Rate:
    case engine::LineKind::Evaluation:
    case engine::LineKind::LossNotFinite:
    case engine::LineKind::SetUp:
    case engine::LineKind::TrainingStarted:
    case engine::LineKind::SaveStarted:
    case engine::LineKind::SaveScheduled:
    case engine::LineKind::SaveDone:
    case engine::LineKind::LoadStarted:
    case engine::LineKind::Loaded:
    case engine::LineKind::NothingToLoad: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace muster::agent
