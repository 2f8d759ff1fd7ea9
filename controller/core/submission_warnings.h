// Finds parts of a submission that are accepted, but may not work as intended. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

struct AcceptedJob {
  const Ledger& ledger;
  const Presence& presence;
  const JobRecord& job;
  std::string out;              // the directory of its output
  std::vector<NodeName> nodes;  // that it got, or would get now; empty: it waits
  Now now;
  const Limits& limits;
};

// Returns one sentence each.
std::vector<std::string> submission_warnings(const AcceptedJob& accepted);

}  // namespace muster::core
