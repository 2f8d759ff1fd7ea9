// Answers ExplainJob: why a job waits, or what broke it. Owns nothing. Runs on the shell's strand,
// for an archived job on the archive's thread in between.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Finishes `reactor`, now or later; request and response must live until then.
void explain_job(Edge& edge, const JobAccess& access, const v1::ExplainJobRequest* request,
                 v1::ExplainJobResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
