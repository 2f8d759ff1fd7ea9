// The warnings of `muster plan` and `muster run` about files on this machine that will not do what
// they seem to do. Stateless functions that read files. One thread.
//
// There is one line for each warning. The controller's own warnings are not among them.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Warnings about a node's script (launch.per: node): values that it computes from its own numbers,
// and checkpoints that no attempt can resume from.
std::vector<std::string> script_warnings(const v1::JobSpec& spec);

// Warnings about changes that a file does not accept (plan_patches.h), texts that name the code
// without its patches (plan_code.h), and the script. `plan` must have at least one node.
std::vector<std::string> plan_warnings(const v1::PlanJobResponse& plan);

}  // namespace muster::client
