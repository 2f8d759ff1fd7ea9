// Plans what each rank would get, with the source of every value (PlanJob). The function owns
// nothing. It runs on the shell's strand, and plans on the work loop.
//
// attempt_launch.h shows what a rank of a recorded attempt did get.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// For a stage, the request contains the whole chain (request.stages). The ids of the other stages
// do not exist yet and are shown as "<id of STAGE>". Finishes `reactor`, now or later; request and
// response must live until then.
void plan_job(Edge& edge, const JobAccess& access, const v1::PlanJobRequest* request,
              v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
