// Whether a rank's log shows that the training reached its end (success: last-step). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "common/engine/grammar.h"

namespace muster::agent {

// What one more line says of it: true: reached, false: it ends before its last step; nothing: what
// was known stays. `latest` is what all lines tell of progress, this one included; `covers`: steps
// that this line is about. Where lines come every so many steps, the last ones of a training have
// none of their own: they count as done when fewer are left than a line covers.
std::optional<bool> end_reached(const engine::LogLine& line, const engine::StepLine& latest,
                                std::int64_t covers);

}  // namespace muster::agent
