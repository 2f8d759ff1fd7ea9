// Explains the end of a node's script by the logs of the ranks that it started. Pure, except that
// the logs' last bytes are read. ScriptLogs (script_logs.h) calls it on the watch thread.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/logs/rank_reader.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

// The log of a rank of the training, as far as it was copied.
struct ScriptRank {
  std::uint32_t rank = 0;
  RankReader* reader = nullptr;
};

// Adds to the script's ending what the logs of its ranks show: success, the last step and, if it
// failed, the line that shows why. A rank that the worker named in the script's log as the cause
// explains it; otherwise the best line of all logs does, if it is better than the script's own.
void explain_script_end(std::vector<ScriptRank> ranks, RankEnding& ending);

}  // namespace muster::agent
