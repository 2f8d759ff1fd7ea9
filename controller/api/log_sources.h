// Which logs a job has, and what to say to a reader who asks for others. Values: taken on the strand (or from the archive), looked at on the work loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "controller/core/core.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

struct LogSources {
  struct Part {
    NodeName node;
    RankNo first;
    std::uint32_t count = 0;
    bool there = false;      // its agent is connected: what is missing may still come,
    bool collected = false;  // unless all of it has come, or nothing ever can: the part never started
  };
  JobId job;
  std::string name;
  bool final = false;
  std::map<AttemptNo, std::vector<Part>> attempts;
};
LogSources log_sources(const core::JobRecord& job, const core::Presence& presence);

// What of `request` (attempt, node, ranks) is not in the `chosen` attempts of the job, and what there is instead, as one sentence. Nothing: all is there.
// `chosen` is empty when the attempt that was asked for is not there.
std::optional<std::string> missing_logs(const LogSources& sources, std::span<const AttemptNo> chosen, const v1::ReadLogsRequest& request);

}  // namespace muster::controller
