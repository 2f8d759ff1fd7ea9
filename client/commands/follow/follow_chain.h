// Follows the stages of a chain, one after another, with a banner line for each. A ChainFollower in
// follow_chain.cc exists for one call. The caller's thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/commands/follow/follow.h"

namespace muster::client {

struct ChainFollowOptions {
  std::string chain;       // its name
  std::size_t before = 0;  // number of stages before these, not followed
  bool logs = true;
  bool quiet = false;
  // for the first stage, as in FollowOptions; the others are followed from their beginning
  bool joins = false;
};

// Returns when all stages have ended, with the worst exit code. `stages` must be in order. A stage
// that has ended without an attempt gets only a line.
Result<int> follow_chain(const Context& context, const Session& session, Interrupt& interrupt,
                         const std::vector<v1::ChainStage>& stages,
                         const ChainFollowOptions& options);

// Returns the worse of two exit codes of jobs: failed is worse than cannot be placed, and that is
// worse than cancelled.
int worse_exit(int a, int b);

}  // namespace muster::client
