// What each rank would get (PlanJob), and what a rank of a recorded attempt did get (GetRankLaunch), with where every value came from.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// A client's spec, checked and with every default filled in. InvalidArgument lists every problem, one a line.
Result<v1::JobSpec> complete_spec(const v1::JobSpec& given);

// Both finish `reactor`, now or later; request and response live until then.
void plan_job(Edge& edge, const v1::PlanJobRequest* request, v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor);
void get_rank_launch(Edge& edge, const v1::GetRankLaunchRequest* request, v1::GetRankLaunchResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
