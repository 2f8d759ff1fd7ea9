// From what the ledger knows of an attempt to what common/engine wants, and to what goes over the wire to one node. Pure: the same ledger always gives
// the same launch, in every life of the controller.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/engine/engine.h"
#include "controller/core/ledger.h"

namespace muster::controller {

// `request.spec` points at `spec`. `cluster_out`: below it go the outputs of jobs that name no directory.
engine::LaunchRequest launch_request(const v1::JobSpec& spec, const JobId& job, AttemptNo attempt, std::span<const core::PlacedNode> nodes,
                                     std::uint16_t master_port, const std::optional<core::ResumePoint>& resume, const core::Ledger& ledger,
                                     const std::string& cluster_out);
engine::LaunchRequest launch_request(const core::JobRecord& job, const core::AttemptRecord& attempt, const core::Ledger& ledger,
                                     const std::string& cluster_out);

// Every node's part, in the attempt's order of nodes.
Result<std::vector<v1::NodeLaunch>> node_launches(const core::JobRecord& job, const core::AttemptRecord& attempt, const core::Ledger& ledger,
                                                  const std::string& cluster_out);

}  // namespace muster::controller
