// The launcher shim of one run, for a script a node (launch.per: node): muster-worker under the
// launchers' names, in the run directory, and what the script's environment has for it. What the
// shim does: docs/launcher-shim.md. Writes links; any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// torchrun and msrun always; python, python3 and python3.N as far as PATH has them, for a script
// may choose by what is there: with a setup, which makes a PATH of its own, python and python3.
// Made anew where something of it is there. Errors: the disk's.
Result<void> make_shim_dir(const rundir::RunLayout& layout, const std::filesystem::path& worker,
                           const v1::NodeLaunch& order, const std::string& agent_path);

// MUSTER_SHIM_DIR, MUSTER_SHIM_REPORT and MUSTER_SHIM_NODE_LOG; and torchrun and msrun as
// functions, which bash prefers to PATH: an environment that the script activates stands before the
// shim on PATH.
std::map<std::string, std::string> shim_environment(const rundir::RunLayout& layout,
                                                    const v1::NodeLaunch& order);

}  // namespace muster::agent
