// Functions for the logs next to the rank logs: which of them a run has, and what the log of an
// auxiliary process shows of its end. They keep no state. The agent's loop calls auxiliary_logs()
// and script_log(); the Host calls evidence_of_log() on the same loop.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/logs/script_log_copy.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Names of the logs, as in RunLayout::node_log.
std::vector<std::string> auxiliary_logs(const v1::NodeLaunch& order);

// Converts a file that a node's script writes for a rank into what the watch follows. The file is
// opened with the rights of the run's user.
ScriptLog script_log(const ScriptLogSeen& seen);

// Returns the line of the last 64 KiB that best shows why the process ended, at most 1,024 bytes.
// Empty: no line shows it, or the log cannot be read. Blocking, bounded; may run on any thread.
std::string evidence_of_log(const std::filesystem::path& log);

}  // namespace muster::agent
