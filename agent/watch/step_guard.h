// Which step lines count. A line may name any number ("step 999999999999 loss 1"), and one step too
// high makes every later one look like no progress at all. What lies beyond the total of its own
// line is no step. What lies far from where the training stands is held back, and counts once the
// next line goes on from it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/engine/grammar.h"

namespace muster::agent {

class StepGuard {
 public:
  // `begin`: the step of the checkpoint that was handed over, 0: none. `total_given`: totals are
  // the spec's word, not the lines' own.
  StepGuard(std::int64_t begin, bool total_given) : begin_(begin), total_given_(total_given) {}

  // Both: the one that was held back as well, first
  enum class Verdict : std::uint8_t { Counts, Both, Not };
  Verdict judge(const engine::StepLine& line, const engine::StepLine& latest);
  // after Both
  [[nodiscard]] engine::StepLine take_pending() { return *std::exchange(pending_, std::nullopt); }
  // As judge(), of a line that nothing will follow.
  [[nodiscard]] bool is_near(const engine::StepLine& line, const engine::StepLine& latest) const;

 private:
  [[nodiscard]] bool contradicts_itself(const engine::StepLine& line) const {
    return !total_given_ && line.total > 0 && line.step > line.total;
  }
  [[nodiscard]] std::int64_t reach() const;

  const std::int64_t begin_;
  const bool total_given_;
  std::int64_t apart_ = 0;  // the last two that counted
  std::optional<engine::StepLine> pending_;
};

}  // namespace muster::agent
