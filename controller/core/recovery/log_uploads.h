// Uploads of logs, as the ledger has them. Each node uploads the logs of its own processes. While
// they run it does so by itself; when it is swept, it is ordered to upload the rest. Its part of
// the attempt stays open until it has reported the end of that. No job waits for it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"

namespace muster::core {

inline bool logs_due(const NodePart& part) { return part.uploads_logs && part.swept; }

// What comes with the sweep of a node that has no logs, or has lost them.
std::optional<OutputsUploaded> lost_logs(const NodePart& part, const NodeSwept& swept);

// The job is forgotten although its logs are not uploaded: their nodes were declared dead.
std::vector<OutputsUploaded> logs_never_to_come(const JobRecord& job, WallTime now);

// For `muster why`: which nodes upload the logs of ended attempts, and what could not be uploaded.
// At most kLogProblemsShown of these. Nothing: there is nothing to say.
inline constexpr std::size_t kLogProblemsShown = 4;
std::vector<std::string> explain_logs(const JobRecord& job);

}  // namespace muster::core
