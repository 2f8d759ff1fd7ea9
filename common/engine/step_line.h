// The fixed shapes of a step line. Pure, no allocation; a line that does not match costs one search in its first bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/engine/grammar.h"

namespace muster::engine {

// Megatron-LM's training_log, any release: " [2025-06-18 14:02:11] iteration  100/ 2000 | elapsed time per iteration (ms): 8.1 | lm loss: 8.1E+00 |".
// With and without time stamp (microseconds or not); fields by key, in any order.
std::optional<StepLine> megatron_step(std::string_view line);

// "step 10/300 loss 2.31", "Iter: 10, train loss: 2.3", "[step=10] loss=2.3": a step and, on the same line, a total or a loss.
std::optional<StepLine> common_step(std::string_view line);

// Digits only, all of the text, at most 2^63-1.
std::optional<std::int64_t> whole_number(std::string_view text);
// Takes the loss when the text starts with a finite number.
void set_loss(StepLine& line, std::string_view text);

}  // namespace muster::engine
