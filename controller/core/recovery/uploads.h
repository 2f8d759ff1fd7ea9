// Uploads of outputs, as the ledger has them: which are due, and whether a job waits for them.
// Pure.
//
// - While an attempt goes on, its newest whole checkpoint is due. All nodes upload their files of
//   the same step before a newer one is due. Then the first of them uploads what says that it is
//   whole (the seal): the list of all their lists of sums, and the engine's mark.
// - Everything is due when no process of the job writes there any more.
// - A later attempt that has started there takes the older one's place: it has the same directory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// As in v1.UploadOrder.
struct NodeSums {
  NodeName node;
  std::string sha256;
  friend bool operator==(const NodeSums&, const NodeSums&) = default;
};
struct UploadOrder {
  std::optional<std::int64_t> step;
  bool seal = false;
  std::vector<NodeSums> sums = {};
  std::vector<RemoteCheckpoint> remove = {}, kept = {};
  bool logs = false;
  friend bool operator==(const UploadOrder&, const UploadOrder&) = default;
};
std::optional<UploadOrder> upload_due(const JobRecord& job, const AttemptRecord& attempt,
                                      const NodePart& part);

// The one that uploads the seals, if any does.
const NodePart& sealing_part(const AttemptRecord& attempt);

// A checkpoint, or its mark, that a job's other nodes wait for, and that will not come, because its
// node is lost. Nothing: they do not wait.
std::optional<UploadOrder> checkpoint_lost(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, const AttemptRecord& attempt,
                                           const NodePart& part, Now now, const Limits& limits);

// What comes with the sweep of a node that has written outputs, and has lost them.
std::optional<OutputsUploaded> lost_outputs(const NodePart& part, const NodeSwept& swept);
inline constexpr std::string_view kDirectoryLost = "the node has lost the run's directory";

// The nodes that have not uploaded what the attempts of the job have written there.
std::vector<std::string> uploading_nodes(const JobRecord& job);

struct UploadsCheck {
  bool go_on = false;                // one of these nodes is there, and will report the end
  std::optional<BootTime> check_at;  // when time alone may change that
};
UploadsCheck check_uploads(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                           Now now, const Limits& limits);

}  // namespace muster::core
