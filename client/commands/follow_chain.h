// Following the stages of a chain, one after another, with a banner line each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/commands/follow.h"

namespace muster::client {

struct ChainFollowOptions {
  std::string chain;       // its name
  std::size_t before = 0;  // stages that are not followed
  bool logs = true;
  bool quiet = false;
  // the first of them, as in FollowOptions; the others are followed from their beginning
  bool joins = false;
};

// Until all have ended: the exit code of the worst. `stages` in order; those that have ended
// already only get a line.
Result<int> follow_chain(const Context& context, const Session& session, Interrupt& interrupt,
                         const std::vector<v1::ChainStage>& stages,
                         const ChainFollowOptions& options);

// Of two exit codes of jobs the worse: failed before cannot be placed, that before cancelled.
int worse_exit(int a, int b);

}  // namespace muster::client
