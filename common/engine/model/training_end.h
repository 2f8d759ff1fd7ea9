// What a spec states about the end of its training, in addition to no_last_step() of engine.h.
// Pure.
#pragma once

#include "common/engine/model/engine.h"

namespace muster::engine {

// Whether the command is known to train. MindFormers' own script takes launch.mode. For a model's
// own script, or for launch.run of another form, only a --run_mode with a training mode shows it.
bool trains_surely(const v1::JobSpec& spec);

// Whether launch.mode requests a training: another attempt can resume it, and it ends at a last
// step.
bool asks_for_training(const v1::JobSpec& spec);

// The file that every rank must leave behind if its status alone shows nothing, as a template of
// the rank: the strategy file of launch.mode: strategy. Empty: there is none.
std::string rank_file(const v1::JobSpec& spec);

}  // namespace muster::engine
