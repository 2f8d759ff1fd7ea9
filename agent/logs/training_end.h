// Decides whether a rank's log shows that the training reached its end (success: last-step). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "common/engine/model/grammar.h"

namespace muster::agent {

// Evaluates one more line. Returns true if the end is reached, false if the training ends before
// its last step, and nullopt if the answer does not change.
//
// `latest` is the progress after all lines, including this one. `covers` is the number of steps
// that this line reports. If lines appear only every few steps, the last steps of a training have
// no line. They count as done when fewer steps are left than one line covers.
std::optional<bool> end_reached(const engine::LogLine& line, const engine::StepLine& latest,
                                std::int64_t covers);

}  // namespace muster::agent
