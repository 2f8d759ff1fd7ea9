// What a spec says of its training's end, beside no_last_step() of engine.h. Pure.
#pragma once

#include "common/engine/engine.h"

namespace muster::engine {

// Whether the command is known to train: MindFormers' own takes launch.mode; of a model's own script, or a launch.run of another form, only a --run_mode that
// says so tells.
bool trains_surely(const v1::JobSpec& spec);

}  // namespace muster::engine
