// What a spec says of its training's end, beside no_last_step() of engine.h. Pure.
#pragma once

#include "common/engine/engine.h"

namespace muster::engine {

// Whether the command is known to train: MindFormers' own takes launch.mode; of a model's own
// script, or a launch.run of another form, only a --run_mode that says so tells.
bool trains_surely(const v1::JobSpec& spec);

// Whether launch.mode asks for a training: what can be gone on with, and ends at a last step.
bool asks_for_training(const v1::JobSpec& spec);

// What every rank has to leave behind where its status alone says nothing, as a template of the
// rank: the strategy file of launch.mode: strategy. Empty: nothing.
std::string rank_file(const v1::JobSpec& spec);

}  // namespace muster::engine
