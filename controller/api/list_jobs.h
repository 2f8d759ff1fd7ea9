// Answers ListJobs: a page of jobs from ledger and archive together. Owns nothing. Runs on the
// shell's strand, and then on the archive's thread.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Finishes `reactor`, now or later; request and response must live until then.
void list_jobs(Edge& edge, const JobAccess& access, const v1::ListJobsRequest* request,
               v1::ListJobsResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
