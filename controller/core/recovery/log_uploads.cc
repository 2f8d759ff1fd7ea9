#include "controller/core/recovery/log_uploads.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "controller/core/model/text.h"
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

std::vector<std::string> explain_logs(const JobRecord& job) {
  std::set<std::string> uploading;
  std::vector<std::string> lines;
  for (const AttemptRecord& attempt : job.attempts) {
    for (const NodePart& part : attempt.parts) {
      if (logs_due(part) && is_over(attempt.state)) uploading.insert(part.placed.node.str());
      if (part.logs_end && !part.logs_end->problem.empty() && lines.size() < kLogProblemsShown)
        lines.push_back(fmt::format("not all logs of attempt {} on node '{}' are in the store: {}",
                                    attempt.number.value, part.placed.node.str(),
                                    part.logs_end->problem));
    }
  }
  if (!uploading.empty())
    lines.push_back(fmt::format("logs of ended attempts are uploaded by {}",
                                some_of({uploading.begin(), uploading.end()})));
  return lines;
}

}  // namespace muster::core
