// Whose fault it is when a node cannot start its part of an attempt, and for how long the job then
// leaves that node alone. Pure.
//
//   launch      the job's: its program, script, working directory, device or user is not there;
//               never tried again, unless an attempt of the job has run: what was there then is
//               missing on this node, or for this moment, and that is the node's, as disk
//   gone        nobody's: the node was restarted between placement and start, the next placement
//               pins its new life; at once, in place
//   port        a stranger's: the next attempt gets another port; at once, in place. Of a port that
//               the spec fixes, as disk. On rank 0's node nobody tells that one from a port for
//               HCCL
//   checkpoint  the one to resume from was read on the node, and is torn: where the node's word is
//               enough (checkpoints.h) it is quarantined, and the next attempt goes on from an
//               older
//               one, at once, in place. Where it is not, as disk. Or newer ones than the ledger's
//               were found: the next attempt goes on from these
//   disk, node  the node's: at once elsewhere; on the node itself after a pause, so that a disk
//               that stays full is not asked again and again
//
// Every one is charged, and five in a row without a new best step end the job; but a checkpoint
// that is quarantined for being torn, or found, costs nothing, nor a port that muster chose itself
// before Limits::taken_ports_max starts in a row were lost to such. Avoiding such a node is what
// recovery.avoid_failed_node stands for; it has no value but true yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "controller/core/core.h"

namespace muster::core {

// An attempt of it was started on all its nodes.
bool has_run(const JobRecord& job);
bool is_jobs_own(StartFailure why, const JobRecord& job);
bool is_nodes_own(StartFailure why);
// It has told of newer checkpoints than the ledger had (lost_end.h).
bool found_newer(const NodeStartFailed& failure);

// The first by its node's clock; nullptr: there is none.
const NodeStartFailed* first_start_failure(const AttemptRecord& attempt);
// Why it broke is that a stranger had a port of muster's own choice: how many attempts of the job
// in a row, up to this one, broke so. 0: it did not.
std::uint32_t lost_to_ports(const JobRecord& job, const AttemptRecord& attempt);
// The ports that these were to use: "20000, 20001 or 20068-20099".
std::string ports_tried(const JobRecord& job, const AttemptRecord& attempt);

struct AvoidedNode {
  AttemptNo attempt;  // the latest that it could not start
  StartFailure why{};
  // until then the job leaves it alone; nothing: it may be used again, when no other does
  std::optional<BootTime> retry_at;
};

// Nodes that could not start the job's latest attempts, each of which failed by such a node. None
// as soon as one got further.
std::map<NodeName, AvoidedNode> avoided_nodes(const JobRecord& job, Now now, const Limits& limits);

}  // namespace muster::core
