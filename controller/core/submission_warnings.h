// What of a submission is taken, and may not go as it is meant. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

// A sentence each. `out`: where the job's output goes.
std::vector<std::string> submission_warnings(const Ledger& ledger, const v1::JobSpec& spec,
                                             const std::string& out);

}  // namespace muster::core
