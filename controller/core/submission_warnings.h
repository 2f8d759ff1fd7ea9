// Finds parts of a submission that are accepted, but may not work as intended. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

// Returns one sentence each. `out`: the directory of the job's output.
std::vector<std::string> submission_warnings(const Ledger& ledger, const v1::JobSpec& spec,
                                             const std::string& out);

}  // namespace muster::core
