// Decides whose fault it is when a node cannot start its part of an attempt, and for how long the
// job then avoids that node. Pure.
//
//   launch      the job's fault: its program, script, working directory, device or user does not
//               exist. It is never tried again. But if an attempt of the job has run, something is
//               missing on this node or at this moment. That is the node's fault, as disk.
//   gone        nobody's fault: the node was restarted between placement and start. The next
//               placement pins its new boot; at once, in place.
//   port        another program's fault: the next attempt gets another port; at once, in place. If
//               the spec fixes the port, as disk. On rank 0's node, nobody can distinguish that
//               port from a port for HCCL.
//   checkpoint  the node read the checkpoint to resume from, and it is torn. If the node's report
//               is enough (checkpoints.h), it is quarantined, and the next attempt resumes from an
//               older one; at once, in place. If the report is not enough, as disk. Or the node
//               found newer checkpoints than the ledger's: the next attempt resumes from these.
//   inputs      nobody's fault here: the store of the job's inputs was away for minutes, in which
//               the node tried again and again, or they were changed meanwhile; at once, in place.
//   disk, node  the node's fault: at once on other nodes; on the node itself after a pause, so that
//               a disk that stays full is not tried again and again.
//
// Every failure is charged, and five in a row without a new best step end the job. Three cases cost
// nothing:
//
// - A checkpoint is quarantined as torn.
// - Newer checkpoints were found.
// - A port that muster chose was taken. This holds for the first Limits::taken_ports_max such
//   starts in a row.
//
// recovery.avoid_failed_node is the key for avoiding such a node. It has no value except true yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"

namespace muster::core {

// Some attempt of the job was started on all its nodes.
bool has_run(const JobRecord& job);
bool is_jobs_own(StartFailure why, const JobRecord& job);
bool is_nodes_own(StartFailure why);
// The node reported newer checkpoints than the ledger had (lost_end.h).
bool found_newer(const NodeStartFailed& failure);

// The earliest failure by NodeStartFailed::controller_time. Nullptr: there is none.
const NodeStartFailed* first_start_failure(const AttemptRecord& attempt);
// How many attempts of the job in a row, up to this one, broke because another program had a port
// that muster chose. 0: this attempt broke for another reason.
std::uint32_t lost_to_ports(const JobRecord& job, const AttemptRecord& attempt);
// The ports that these attempts had to use: "20000, 20001 or 20068-20099".
std::string ports_tried(const JobRecord& job, const AttemptRecord& attempt);

struct AvoidedNode {
  AttemptNo attempt;  // the latest attempt that the node could not start
  StartFailure why{};
  // The job avoids the node until this time. Nothing: the job may use it again, if no other node
  // fits.
  std::optional<BootTime> retry_at;
};

// The nodes that could not start the job's latest attempts, if each of these attempts failed
// because of such a node. Empty as soon as an attempt gets further.
std::map<NodeName, AvoidedNode> avoided_nodes(const JobRecord& job, Now now, const Limits& limits);

}  // namespace muster::core
