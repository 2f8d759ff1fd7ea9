// Plans a recorded attempt once more from its placement: what a rank got (GetRankLaunch), and the
// rank table (GetRankTable). The functions own nothing. They run on the shell's strand or the
// archive's thread, and plan on the work loop.
#pragma once

#include <cstddef>
#include <string>

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Both finish `reactor`, now or later; request and response must live until then.
void get_rank_launch(Edge& edge, const JobAccess& access, const v1::GetRankLaunchRequest* request,
                     v1::GetRankLaunchResponse* response, grpc::ServerUnaryReactor* reactor);
void get_rank_table(Edge& edge, const JobAccess& access, const v1::GetRankTableRequest* request,
                    v1::GetRankTableResponse* response, grpc::ServerUnaryReactor* reactor);

// The ranks that an attempt has, for the end of a sentence. `inside`: the ranks of the training
// inside its scripts; 0: it has no scripts.
std::string ranks_there(std::size_t ranks, std::size_t inside);

}  // namespace muster::controller
