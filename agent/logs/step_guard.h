// StepGuard decides which step lines count. A RankReader owns it. Pure.
//
// A line may contain any number ("step 999999999999 loss 1"). After one step that is too high, no
// later step would count as progress. Therefore:
//   - A step beyond the total of its own line never counts.
//   - A step far from the training's current step is kept as pending. It counts when the next line
//     continues from it.
//   - No two lines make a step count that no training reaches (10^9).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/engine/model/grammar.h"

namespace muster::agent {

class StepGuard {
 public:
  // `begin` is the step of the checkpoint that the run resumes from, 0: none. `total_given` means
  // that totals come from the spec and not from the lines.
  StepGuard(std::int64_t begin, bool total_given) : begin_(begin), total_given_(total_given) {}

  // Both: the pending line counts as well, before this one.
  enum class Verdict : std::uint8_t { Counts, Both, Not };
  Verdict judge(const engine::StepLine& line, const engine::StepLine& latest);
  // Call it after Both.
  [[nodiscard]] engine::StepLine take_pending() { return *std::exchange(pending_, std::nullopt); }
  // Like judge(), for a line that no other line follows.
  [[nodiscard]] bool is_near(const engine::StepLine& line, const engine::StepLine& latest) const;

 private:
  [[nodiscard]] bool contradicts_itself(const engine::StepLine& line) const {
    return !total_given_ && line.total > 0 && line.step > line.total;
  }
  [[nodiscard]] std::int64_t reach() const;

  const std::int64_t begin_;
  const bool total_given_;
  std::int64_t apart_ = 0;  // difference of the last two steps that counted
  std::optional<engine::StepLine> pending_;
};

}  // namespace muster::agent
