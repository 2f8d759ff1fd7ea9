// muster-worker under another name: what stands first on the PATH of a node's script (launch.per:
// node). `torchrun` and `msrun` are answered here, so is `python -m torch.distributed.run|launch`;
// a python for anything else is the next one on PATH, in place of this process.
// Where muster has not started the script, or a rank calls a launcher itself, the next program of
// the name on PATH is executed as well.
#pragma once

#include <string_view>

namespace muster::shim {

// "torchrun", "msrun", "python", "python3", "python3.11".
bool is_shim_name(std::string_view name);

// Exit status of this process: the first bad one of the ranks (128 and the signal's number for one
// that was killed); 2: an option that the launcher does not have; 127: there is no such program.
int run_shim(std::string_view name, int argc, char** argv);

}  // namespace muster::shim
