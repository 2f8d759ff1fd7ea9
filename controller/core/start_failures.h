// Whose fault it is when a node cannot start its part of an attempt, and for how long the job then leaves that node alone. Pure.
//
//   launch      the job's: its program, script, working directory, device or user is not there; never tried again, unless an attempt of the job has run: what
//               was there then is missing on this node, or for this moment, and that is the node's, as disk
//   gone        nobody's: the node was restarted between placement and start, the next placement pins its new life; at once, in place
//   port        a stranger's: the next attempt gets another port; at once, in place. Of a port that the spec fixes, as disk
//   disk, node  the node's: at once elsewhere; on the node itself after a pause, so that a disk that stays full is not asked again and again
//
// Every one is charged, and five in a row without a new best step end the job. Avoiding such a node is what recovery.avoid_failed_node stands for; it has
// no value but true yet.
#pragma once

#include <map>
#include <optional>

#include "controller/core/core.h"

namespace muster::core {

// An attempt of it was started on all its nodes.
bool has_run(const JobRecord& job);
bool is_jobs_own(StartFailure why, const JobRecord& job);
bool is_nodes_own(StartFailure why);

struct AvoidedNode {
  AttemptNo attempt;  // the latest that it could not start
  StartFailure why{};
  std::optional<BootTime> retry_at;  // until then the job leaves it alone; nothing: it may be used again, when no other does
};

// Nodes that could not start the job's latest attempts, each of which failed by such a node. None as soon as one got further.
std::map<NodeName, AvoidedNode> avoided_nodes(const JobRecord& job, Now now, const Limits& limits);

}  // namespace muster::core
