// Lists the logs that a job has, and makes the answer to a reader who requests others. Plain
// values. They are made on the strand or on the archive's thread, and used on the work loop.
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
    // For a node's script: the ranks inside it.
    std::uint32_t training_first = 0, training_count = 0;
  };
  JobId job;
  std::string name;
  bool final = false;
  std::set<std::string> node_logs;  // other logs than the ranks' that its spec needs
  std::map<AttemptNo, std::vector<Part>> attempts;
};
LogSources log_sources(const core::JobRecord& job, const core::Presence& presence);

// What a request asks for. ReadLogsRequest.node_logs contains names, "*" for all of them, and
// kFailedSetups. The last one means the setup log of each node whose start failed, in addition to
// the rest. Names and "*" without ranks select only those logs.
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

// With launch.per: node the ranks of the training are inside the scripts. Scripts have the lower
// numbers. The ranks whose number no script has are requested by the names of their logs
// ("rank-5"), in addition to the ranks. Such a log may not have begun, or may belong to a rank
// without a log.
//
// If a script has the number of a rank that is inside another script, the number means the script.
// With request.training_ranks it means both logs, unless that other script is named as well: its
// log has the rank's output. Only the `chosen` attempts count, and with request.node only the
// script of that node and the ranks inside it.
void find_training_ranks(LogSources& sources, std::span<const AttemptNo> chosen,
                         v1::ReadLogsRequest& request);

// What `request` (attempt, node, ranks) asks for that the `chosen` attempts do not have, and what
// exists instead, as one sentence. Nothing: all of it exists. `chosen` is empty if the requested
// attempt does not exist.
std::optional<std::string> missing_logs(const LogSources& sources,
                                        std::span<const AttemptNo> chosen,
                                        const v1::ReadLogsRequest& request);
// The same for the chosen names. `there`: the names for which the store has logs.
std::optional<std::string> missing_auxiliaries(const LogSources& sources,
                                               std::set<std::string> there,
                                               const LogChoice& choice);

}  // namespace muster::controller
