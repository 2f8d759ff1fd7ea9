// What `muster plan` and `muster run` warn of: what lies on this machine, and will not do what it
// seems to say. A line each; nothing of what the controller says.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Of a node's script (launch.per: node): values that it computes from its own numbers, and
// checkpoints that nothing goes on from.
std::vector<std::string> script_warnings(const v1::JobSpec& spec);

// Changes that a file does not take (plan_patches.h); texts that name the code without its patches
// (plan_code.h); the script's. `plan`: of one node at least.
std::vector<std::string> plan_warnings(const v1::PlanJobResponse& plan);

}  // namespace muster::client
