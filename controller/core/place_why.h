// What a job asks for and what there is, as `why`, a refusal and a plan say it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/core/candidates.h"
#include "controller/core/host_ports.h"
#include "controller/core/placing.h"
#include "controller/core/training_route.h"

namespace muster::core {

// "need 2 nodes with 4 devices of one group (0-3 or 4-7) of type 'ascend', label rack=c".
std::string need_text(const Placing& placing, const Candidates& candidates);

// The registered nodes could not hold it even if they were idle: `able` of them could do each for
// itself. `pods`: why they cannot together; empty: they are too few.
std::string never_text(const Placing& placing, const Candidates& candidates, std::size_t able,
                       const std::string& pods);

// They could, but not now.
std::string shortage_text(const Placing& placing, const Candidates& candidates, std::size_t fitting,
                          const std::string& pods);

// Of the nodes that could do each for itself, those that do not get to rank 0's if that is on
// `first`.
std::string apart_text(const Candidates& candidates, const std::vector<bool>& able,
                       const TrainingRoutes::ReachableSet& reachable, std::size_t first);

// Of the nodes that could run rank 0 but for its port.
std::string port_shortage_text(const Placing& placing, const Candidates& candidates,
                               HostPorts& ports);
// Of rank 0's node, whose free ports HCCL would need.
std::string no_master_port_text(const NodeName& node, const Limits& limits);
// What helps where the range's ports are held.
inline constexpr std::string_view kWhenPortsAreReserved =
    "; they come free as those end, and a wider --port-range of the controller has more";

// The journal's end was lost, and with it an attempt of this very job that may still run on a node,
// and save. Nothing: none is known to. It holds nobody else up.
std::optional<PlaceResult> waits_for_lost_attempt(const Placing& placing);

}  // namespace muster::core
