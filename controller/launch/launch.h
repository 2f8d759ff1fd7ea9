// From what the ledger knows of an attempt to what common/engine wants, and to what goes over the
// wire to one node. Pure: the same ledger always gives the same launch, in every life of the
// controller. What a node said of itself when the attempt was placed is in the placement; only of
// records of before 0.2 the devices' type is looked up in the node's inventory of now.
#pragma once

#include <span>
#include <string>

#include "common/base/error.h"
#include "common/engine/engine.h"
#include "controller/core/ledger.h"

namespace muster::controller {

// `request.spec` points at `spec`. `cluster_out`: below it go the outputs of jobs that name no
// directory.
engine::LaunchRequest launch_request(const v1::JobSpec& spec, const JobId& job, AttemptNo attempt,
                                     std::span<const core::PlacedNode> nodes,
                                     std::uint16_t master_port,
                                     const std::optional<core::ResumePoint>& resume,
                                     const core::Ledger& ledger, const std::string& cluster_out);
engine::LaunchRequest launch_request(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                     const core::Ledger& ledger, const std::string& cluster_out);

// plan_launch(), with the rank table that an earlier plan of the same request made: it is made
// once, and kept in `request`. Errors: what the engine refuses; a table that is no longer the one
// that was pinned when the attempt was placed.
Result<engine::LaunchPlan> plan_attempt(const std::string& table_sha256,
                                        engine::LaunchRequest& request);

// The part of attempt.parts[part]; its ranks alone are planned. `request` is the attempt's
// launch_request(), made once for all parts: spec, ranks and table of it are set here. Errors: as
// plan_attempt(), a part too large to be sent.
Result<v1::NodeLaunch> part_launch(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                   engine::LaunchRequest& request, std::size_t part);

}  // namespace muster::controller
