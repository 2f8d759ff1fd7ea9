// One launch -> a spec whose ranks muster starts itself: engine, script and arguments, nodes and
// devices. Pure.
//
//   torchrun, torch.distributed.run    engine torch, or megatron / mindspeed-mm where the arguments
//                                      are theirs
//   torch.distributed.launch           the same with --use_env; without it the script is given
//                                      --local_rank, in one of two spellings that only its node's
//                                      PyTorch knows: launch.per: node, and muster's shim answers
//                                      there
//   msrun                              engine mindformers with launcher: msrun, --config and
//                                      --run_mode as keys of their own
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/launcher/call.h"
#include "common/launcher/draft.h"
#include "common/launcher/wanted.h"

namespace muster::launcher {

// How a launcher was called, by whom and where.
struct Launch {
  Call call;
  Wanted wanted;
  std::vector<std::string> words;  // the whole command line
  std::string directory;           // absolute
  // absolute, or a name for the nodes' PATH; empty: as the node has it
  std::string interpreter;
};

// `words` begin with a launcher, by its name or path. Errors (InvalidArgument) of parse_call() and
// wanted_of(), and that it is none.
Result<Launch> read_launch(std::vector<std::string> words, std::string directory);
// Whether the words are a launcher's at all: "torchrun", "/opt/bin/msrun", "python3 -m
// torch.distributed.run".
bool is_launch(const std::vector<std::string>& words);

// whether "${save.dir}" in the arguments is the spec's, or the program's own
enum class Texts { Templates, Literal };
// Without a name. A launch that says no number of processes has none in the draft (devices 0).
Draft draft_of(const Launch& launch, Texts texts);

// engine torch, or the one whose options are among these.
std::string torch_engine(const std::vector<std::string>& args);

// Of run_mindformer.py: --config and --run_mode as launch.config and launch.mode. A relative
// configuration is below the script's directory, as the script has it.
void take_mindformers_options(Draft& draft);

// What becomes of the launcher's options, for people: "decided by the placement: --node_rank 0;
// without effect: --log_dir logs". Empty: nothing to tell.
std::string options_given(const Wanted& wanted);

}  // namespace muster::launcher
