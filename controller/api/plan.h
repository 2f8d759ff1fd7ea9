// What each rank would get, with where every value comes from (PlanJob). What a rank of a recorded
// attempt did get: attempt_launch.h.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Of a stage the whole chain is asked with (request.stages): what does not exist yet, the ids of
// the others, is shown as "<id of STAGE>". Finishes `reactor`, now or later; request and response
// live until then.
void plan_job(Edge& edge, const v1::PlanJobRequest* request, v1::PlanJobResponse* response,
              grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
