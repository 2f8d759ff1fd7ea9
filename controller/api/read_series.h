// Answers ReadSeries: the steps and losses of a job over time. Owns nothing. Runs on the shell's
// strand, then on the archive's thread if only the archive knows the owner, and on the work loop.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Finishes `reactor`, now or later; request and response must live until then.
void read_series(Edge& edge, const JobAccess& access, const v1::ReadSeriesRequest* request,
                 v1::ReadSeriesResponse* response, grpc::ServerUnaryReactor* reactor);

}  // namespace muster::controller
