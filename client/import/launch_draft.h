// Turns one launch into a spec whose ranks muster starts itself: engine, script and arguments,
// nodes and devices. Pure.
//
//   torchrun, torch.distributed.run    the engine is that of the arguments
//   torch.distributed.launch           the same with --use_env. Without it the script gets
//                                      --local_rank, in one of two spellings, and only the node's
//                                      PyTorch knows which one. So the spec has launch.per: node,
//                                      and muster's launcher shim answers the call on the node
//   msrun                              launcher: msrun
//
// Which engine it is, and which of the program's options are keys of the spec, is in the engines'
// rows: common/engine/model/launch_signs.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/compat/launcher/call.h"
#include "common/compat/launcher/draft.h"
#include "common/compat/launcher/launch.h"
#include "common/engine/model/engine.h"

namespace muster::import {

// whether "${save.dir}" in the arguments is a template of the spec, or the program's own text
enum class Texts : std::uint8_t { Templates, Literal };
// The draft has no name. If the launch gives no number of processes, the draft's devices are 0.
launcher::Draft draft_of(const launcher::Launch& launch, Texts texts);

// The engine of a program that this launcher starts with these arguments.
const engine::Engine& engine_of(launcher::Launcher launcher, std::span<const std::string> args);

// Moves the options of the engine's own script that are keys of the spec to launch.config and
// launch.mode.
void take_options(const engine::Engine& engine, launcher::Draft& draft);

}  // namespace muster::import
