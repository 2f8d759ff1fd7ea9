// What each rank would get, with where every value comes from (PlanJob). What a rank of a recorded attempt did get: attempt_launch.h.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// A client's spec, checked and with every default filled in. InvalidArgument lists every problem, one a line.
Result<v1::JobSpec> complete_spec(const v1::JobSpec& given);

// Finishes `reactor`, now or later; request and response live until then.
void plan_job(Edge& edge, const v1::PlanJobRequest* request, v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
