// Turns one launch into a spec whose ranks muster starts itself: engine, script and arguments,
// nodes and devices. Pure.
//
//   torchrun, torch.distributed.run    engine torch; megatron or mindspeed-mm if the arguments are
//                                      theirs
//   torch.distributed.launch           the same with --use_env. Without it the script gets
//                                      --local_rank, in one of two spellings, and only the node's
//                                      PyTorch knows which one. So the spec has launch.per: node,
//                                      and muster's launcher shim answers the call on the node
//   msrun                              engine mindformers with launcher: msrun; --config and
//                                      --run_mode become keys of the spec
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/compat/launcher/call.h"
#include "common/compat/launcher/draft.h"
#include "common/compat/launcher/wanted.h"

namespace muster::launcher {

// How a launcher is called, with which interpreter and in which directory.
struct Launch {
  Call call;
  Wanted wanted;
  std::vector<std::string> words;  // the whole command line
  std::string directory;           // absolute
  // absolute, or a name for the nodes' PATH; empty: the node's own interpreter
  std::string interpreter;
};

// `words` begin with a launcher, by its name or path. Errors (InvalidArgument): those of
// parse_call() and wanted_of(), or the words are no launcher's.
Result<Launch> read_launch(std::vector<std::string> words, std::string directory);
// Whether the words call a launcher: "torchrun", "/opt/bin/msrun", "python3 -m
// torch.distributed.run".
bool is_launch(const std::vector<std::string>& words);

// whether "${save.dir}" in the arguments is a template of the spec, or the program's own text
enum class Texts { Templates, Literal };
// The draft has no name. If the launch gives no number of processes, the draft's devices are 0.
Draft draft_of(const Launch& launch, Texts texts);

// engine torch, or the engine whose options are among the arguments.
std::string torch_engine(const std::vector<std::string>& args);

// Moves --config and --run_mode of run_mindformer.py to launch.config and launch.mode. A relative
// configuration is below the script's directory, as the script expects it.
void take_mindformers_options(Draft& draft);

// A text for people about the launcher's options: "decided by the placement: --node_rank 0; without
// effect: --log_dir logs". Empty: nothing to report.
std::string options_given(const Wanted& wanted);

}  // namespace muster::launcher
