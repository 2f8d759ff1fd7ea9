// Functions that set up the launcher shim of one run, for a node's script (launch.per: node). They
// keep no state. They make links, and may run on any thread.
//
// The shim is muster-worker under the launchers' names, in the run directory. docs/launcher-shim.md
// says what it does.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Makes torchrun and msrun always, and those of python, python3 and python3.N that PATH has,
// because a script may choose by what exists. A setup makes its own PATH; then python and python3
// are made. Existing links are made again. Errors: those of the disk.
Result<void> make_shim_dir(const rundir::RunLayout& layout, const std::filesystem::path& worker,
                           const v1::NodeLaunch& order, const std::string& agent_path);

// Returns MUSTER_SHIM_DIR, MUSTER_SHIM_REPORT and MUSTER_SHIM_NODE_LOG, and torchrun and msrun as
// bash functions. bash prefers functions to PATH. An environment that the script activates comes
// before the shim on PATH.
std::map<std::string, std::string> shim_environment(const rundir::RunLayout& layout,
                                                    const v1::NodeLaunch& order);

}  // namespace muster::agent
