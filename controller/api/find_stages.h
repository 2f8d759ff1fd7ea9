// Which stages of a chain need not run again (FindStages): those whose newest job has succeeded,
// made from the same (StageSpec.key). Jobs are found as long as their tombstones are kept, whether
// their rows are in the ledger or in the archive.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// The newest stage of this name, CHAIN.STAGE; empty: there is none. Pure.
JobId newest_stage(const core::Ledger& ledger, const std::string& job_name);

// Finishes `reactor`, now or later; request and response live until then.
void find_stages(Edge& edge, const v1::FindStagesRequest* request, v1::FindStagesResponse* response,
                 grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
