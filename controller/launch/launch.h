// Turns what the ledger has about an attempt into the input of common/engine, and into the part
// that one node is sent. Pure.
//
// The same record always gives the same launch, in every incarnation of the controller. The
// placement contains what a node reported about itself at that time.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/engine/model/engine.h"
#include "controller/core/model/ledger.h"

namespace muster::controller {

// `request` points at `spec` and `resolved`. `cluster_out`: the parent directory for outputs of
// jobs that name no directory.
engine::LaunchRequest launch_request(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                                     const JobId& job, AttemptNo attempt,
                                     std::vector<core::PlacedNode> nodes, std::uint16_t master_port,
                                     const std::optional<core::ResumePoint>& resume,
                                     const std::string& cluster_out);
engine::LaunchRequest launch_request(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                     const std::string& cluster_out);

// Calls plan_launch(). The rank table is made once, is kept in `request`, and is used again for
// later plans of the same request. Errors: what the engine refuses; a table that differs from the
// one that was pinned at the placement.
Result<engine::LaunchPlan> plan_attempt(const std::string& table_sha256,
                                        engine::LaunchRequest& request);

// The part attempt.parts[part]; only its ranks are planned. `request` is the attempt's
// launch_request(), made once for all parts; this function sets its spec, resolved spec, ranks and
// table. Errors: as in plan_attempt(); a part that is too large to be sent.
Result<v1::NodeLaunch> part_launch(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                   engine::LaunchRequest& request, std::size_t part);

}  // namespace muster::controller
