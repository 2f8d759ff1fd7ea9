// What a recorded attempt was launched with, planned once more from its placement: what a rank got
// (GetRankLaunch), the rank table (GetRankTable).
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Both finish `reactor`, now or later; request and response live until then.
void get_rank_launch(Edge& edge, const v1::GetRankLaunchRequest* request,
                     v1::GetRankLaunchResponse* response, grpc::ServerUnaryReactor* reactor);
void get_rank_table(Edge& edge, const v1::GetRankTableRequest* request,
                    v1::GetRankTableResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
