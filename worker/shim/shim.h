// The launcher shim: muster-worker under another name, first on the PATH of a node's script
// (launch.per: node). main() (worker/main.cc) calls run_shim(), which runs for the whole process.
// It has one thread.
//
//   - It answers `torchrun`, `msrun` and `python -m torch.distributed.run|launch`.
//   - For any other call of python it replaces this process by the next python on PATH.
//   - If muster has not started the script, or a rank itself calls a launcher, it also executes the
//     next program of that name on PATH.
#pragma once

#include <string_view>

namespace muster::shim {

// "torchrun", "msrun", "python", "python3", "python3.11".
bool is_shim_name(std::string_view name);

// Returns the exit status of this process. It is the first bad status of the ranks (128 plus the
// signal's number for a killed rank). 2: the launcher does not have that option. 127: there is no
// such program.
int run_shim(std::string_view name, int argc, char** argv);

}  // namespace muster::shim
