// The logs beside the ranks': which a run has, and what an auxiliary process's says of its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/watch/script_log_copy.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Names of the logs, as in RunLayout::node_log.
std::vector<std::string> auxiliary_logs(const v1::NodeLaunch& order);

// The files of ranks that a node's script writes, as the watch follows them: opened with the rights
// of the run's user.
ScriptLog script_log(const ScriptLogSeen& seen);

// Blocking, bounded; any thread. The line of the last 64 KiB that tells best why it ended, at most
// 1,024 bytes; empty: none does, or the log cannot be read.
std::string evidence_of_log(const std::filesystem::path& log);

}  // namespace muster::agent
