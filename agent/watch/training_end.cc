#include "agent/watch/training_end.h"

#include <algorithm>

namespace muster::agent {

std::optional<bool> end_reached(const engine::LogLine& line, const engine::StepLine& latest,
                                std::int64_t covers) {
  // Unsigned: a line of any bytes may name any numbers.
  const auto left = [&](std::int64_t step) -> std::optional<std::uint64_t> {
    if (latest.total <= 0 || step < 0) return std::nullopt;
    return step >= latest.total
               ? 0
               : static_cast<std::uint64_t>(latest.total) - static_cast<std::uint64_t>(step);
  };
  switch (line.said) {
    case engine::Said::TrainingDone:
    case engine::Said::TrainingSkipped:
    case engine::Said::StrategySaved: return true;
    case engine::Said::Exiting:
      return left(std::max(line.step.step, latest.step)) == std::uint64_t{0};
    case engine::Said::Step: {
      const auto still = left(latest.step);
      if (still && (*still == 0 || (covers > 0 && *still < static_cast<std::uint64_t>(covers))))
        return true;
      return std::nullopt;
    }
    case engine::Said::EpochEnd:
      if (left(latest.step) == std::uint64_t{0}) return true;
      return std::nullopt;
    case engine::Said::Nothing:
    case engine::Said::Rate:
    case engine::Said::Evaluation:
    case engine::Said::LossNotFinite:
    case engine::Said::SetUp:
    case engine::Said::TrainingStarted:
    case engine::Said::SaveStarted:
    case engine::Said::SaveScheduled:
    case engine::Said::SaveDone:
    case engine::Said::LoadStarted:
    case engine::Said::Loaded:
    case engine::Said::NothingToLoad: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace muster::agent
