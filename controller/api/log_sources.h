// Which logs a job has, and what to say to a reader who asks for others. Values: taken on the
// strand (or from the archive), looked at on the work loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
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
    bool there = false;  // its agent is connected: what is missing may still come,
    // unless all of it has come, or nothing ever can: the part never started
    bool collected = false;
    bool start_failed = false;
    // of a node's script: the ranks inside it
    std::uint32_t training_first = 0, training_count = 0;
  };
  JobId job;
  std::string name;
  bool final = false;
  std::set<std::string> node_logs;  // names of the logs beside the ranks' that its spec calls for
  std::map<AttemptNo, std::vector<Part>> attempts;
};
LogSources log_sources(const core::JobRecord& job, const core::Presence& presence);

// What a request asks for. ReadLogsRequest.auxiliaries holds names, "*" for all that there are, and
// kFailedSetups: the setup's log of each node whose start failed, beside what else is asked for.
// Names and "*" without ranks ask for these alone.
inline constexpr std::string_view kSetupLog = "setup", kAllAuxiliaries = "*",
                                  kFailedSetups = "setup:failed";
struct LogChoice {
  explicit LogChoice(const v1::ReadLogsRequest& request);
  bool ranks = true;
  std::set<std::uint32_t> chosen_ranks;  // empty: all
  bool failed_setups = false;
  bool all_auxiliaries = false;
  std::set<std::string> auxiliaries;
  [[nodiscard]] bool any_auxiliaries() const { return all_auxiliaries || !auxiliaries.empty(); }
  [[nodiscard]] bool auxiliary(const std::string& name) const {
    return all_auxiliaries || auxiliaries.contains(name);
  }
};

// With launch.per: node the ranks of the training are inside the scripts, which have the numbers
// below them: those that no script has are asked for by the names of their logs ("rank-5"), beside
// the ranks'. Such a log may not have begun, or be that of a rank without one.
void find_training_ranks(LogSources& sources, v1::ReadLogsRequest& request);

// What of `request` (attempt, node, ranks) is not in the `chosen` attempts of the job, and what
// there is instead, as one sentence. Nothing: all is there. `chosen` is empty when the attempt that
// was asked for is not there.
std::optional<std::string> missing_logs(const LogSources& sources,
                                        std::span<const AttemptNo> chosen,
                                        const v1::ReadLogsRequest& request);
// The same of the chosen names; `there`: of which the store has logs.
std::optional<std::string> missing_auxiliaries(const LogSources& sources,
                                               std::set<std::string> there,
                                               const LogChoice& choice);

}  // namespace muster::controller
