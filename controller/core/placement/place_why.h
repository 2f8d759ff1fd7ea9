// Texts about what a job needs and what exists, for `why`, a refusal and a plan. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/core/placement/candidates.h"
#include "controller/core/placement/host_ports.h"
#include "controller/core/placement/placing.h"
#include "controller/core/placement/training_route.h"

namespace muster::core {

// "need 2 nodes with 4 devices of one group (0-3 or 4-7) of type 'ascend', label rack=c".
std::string need_text(const Placing& placing, const Candidates& candidates);

// The registered nodes could not hold the job even if they were idle. `able` of them fit on their
// own. `pods`: why they do not fit together; empty: they are too few.
std::string never_text(const Placing& placing, const Candidates& candidates, std::size_t able,
                       const std::string& pods);

// The registered nodes could hold the job, but not now.
std::string shortage_text(const Placing& placing, const Candidates& candidates, std::size_t fitting,
                          const std::string& pods);

// Which of the nodes that fit on their own cannot reach rank 0's node, if that is `first`.
std::string apart_text(const Candidates& candidates, const std::vector<bool>& able,
                       const TrainingRoutes::ReachableSet& reachable, std::size_t first);

// About the nodes that could run rank 0 if they had a port.
std::string port_shortage_text(const Placing& placing, const Candidates& candidates,
                               HostPorts& ports);
// About rank 0's node, whose free ports HCCL would need.
std::string no_master_port_text(const NodeName& node, const Limits& limits);
// The remedy if other attempts use the ports of the range.
inline constexpr std::string_view kWhenPortsAreReserved =
    "; they come free as those end, and a wider --port-range of the controller has more";

// The journal's end was lost, and with it an attempt of this same job. That attempt may still run
// on a node, and save. Nothing: no such attempt is known. The job that waits here delays no other
// job.
std::optional<PlaceResult> waits_for_lost_attempt(const Placing& placing);
// The job backs off (recovery.backoff). Nothing: it does not. It delays no other job either.
std::optional<PlaceResult> backs_off(const Placing& placing);
// A secret of the job was removed, or a store of its inputs. Nothing: it has all. It delays no
// other job either.
std::optional<PlaceResult> waits_for_secret(const Placing& placing);
// "for another 40s before attempt 2 (recovery.backoff)". `end`: see backoff_end().
std::string backoff_text(const JobRecord& job, const Presence& presence, Now now, BootTime end);

}  // namespace muster::core
