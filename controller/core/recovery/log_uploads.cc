#include "controller/core/recovery/log_uploads.h"

#include <string>

#include "controller/core/recovery/uploads.h"

namespace muster::core {

std::optional<OutputsUploaded> lost_logs(const NodePart& part, const NodeSwept& swept) {
  if (!part.uploads_logs || swept.logs_follow) return std::nullopt;
  return OutputsUploaded{.job = swept.job,
                         .attempt = swept.attempt,
                         .node = swept.node,
                         .problem = part.ran() ? std::string(kDirectoryLost) : std::string(),
                         .logs = true,
                         .node_time = swept.node_time,
                         .controller_time = swept.controller_time,
                         .instance = swept.instance};
}

std::vector<OutputsUploaded> logs_never_to_come(const JobRecord& job, WallTime now) {
  std::vector<OutputsUploaded> all;
  for (const AttemptRecord& attempt : job.attempts)
    for (const NodePart& part : attempt.parts)
      if (part.uploads_logs)
        all.push_back({.job = job.id,
                       .attempt = attempt.number,
                       .node = part.placed.node,
                       .problem = "the node was declared dead",
                       .logs = true,
                       .node_time = now,
                       .controller_time = now});
  return all;
}

}  // namespace muster::core
