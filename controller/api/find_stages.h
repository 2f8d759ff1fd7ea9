// Finds the stages of a chain that need not run again (FindStages). The functions own nothing.
// find_stages() runs on the shell's strand, and then on the archive's thread.
//
// These are the stages whose newest job has succeeded and was made from the same input
// (StageSpec.key). Jobs are found as long as their tombstones are kept, whether their rows are in
// the ledger or in the archive. Those whose jobs the caller may not see do not count as done.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// The newest stage with this name, CHAIN.STAGE. Empty: there is none. Pure.
JobId newest_stage(const core::Ledger& ledger, const std::string& job_name);

// Finishes `reactor`, now or later; request and response must live until then.
void find_stages(Edge& edge, const JobAccess& access, const v1::FindStagesRequest* request,
                 v1::FindStagesResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
