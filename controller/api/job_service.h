// JobService submits, shows and cancels jobs. run() in main.cc owns it. gRPC's threads call it; the
// work happens as edge.h describes.
//
// Other files do the rest:
//
// - resolve_chain.h finds what submissions name
// - find_stages.h finds stages that are done
// - watch.h watches
// - read_logs.h reads logs
// - plan.h plans
// - attempt_launch.h shows recorded launches
#pragma once

#include <vector>

#include "controller/api/edge.h"
#include "controller/api/job_id.h"
#include "controller/api/read_logs.h"
#include "controller/api/resolve_chain.h"
#include "controller/api/watch.h"
#include "muster/v1/job_service.grpc.pb.h"

namespace muster::controller {

class JobService final : public v1::JobService::CallbackService {
 public:
  JobService(Edge& edge, std::uint64_t seed, std::size_t watch_queue_max = WatchStream::kQueueMax)
      : edge_(edge),
        ids_(seed),
        pacer_(edge.work),
        followers_(edge),
        watch_queue_max_(watch_queue_max) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext*, const v1::SubmitJobRequest*,
                                      v1::SubmitJobResponse*) override;
  grpc::ServerUnaryReactor* FindStages(grpc::CallbackServerContext*, const v1::FindStagesRequest*,
                                       v1::FindStagesResponse*) override;
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext*, const v1::PlanJobRequest*,
                                    v1::PlanJobResponse*) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext*, const v1::GetJobRequest*,
                                   v1::GetJobResponse*) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext*, const v1::ListJobsRequest*,
                                     v1::ListJobsResponse*) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext*, const v1::CancelJobRequest*,
                                      v1::CancelJobResponse*) override;
  grpc::ServerUnaryReactor* ExplainJob(grpc::CallbackServerContext*, const v1::ExplainJobRequest*,
                                       v1::ExplainJobResponse*) override;
  grpc::ServerUnaryReactor* GetRankLaunch(grpc::CallbackServerContext*,
                                          const v1::GetRankLaunchRequest*,
                                          v1::GetRankLaunchResponse*) override;
  grpc::ServerUnaryReactor* GetRankTable(grpc::CallbackServerContext*,
                                         const v1::GetRankTableRequest*,
                                         v1::GetRankTableResponse*) override;
  grpc::ServerUnaryReactor* ReadSeries(grpc::CallbackServerContext*, const v1::ReadSeriesRequest*,
                                       v1::ReadSeriesResponse*) override;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext*,
                                                     const v1::WatchRequest*) override;
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(grpc::CallbackServerContext*,
                                                           const v1::ReadLogsRequest*) override;

  // Call it before the work loop stops, when no call is left.
  void stop() { pacer_.stop(); }

 private:
  // Looks up what the submission names, and submits it. Any thread.
  void start(const JobAccess& access, Result<Submission> submission,
             const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response,
             grpc::ServerUnaryReactor* reactor);
  // For specs in which nothing is left to resolve. `ids` are the ids that the jobs get. Any thread.
  void submit(const std::string& owner, Resolved resolved, std::vector<JobId> ids,
              const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response,
              grpc::ServerUnaryReactor* reactor);

  Edge& edge_;
  JobIdSource ids_;
  SamplePacer pacer_;
  LogFollowers followers_;
  std::size_t watch_queue_max_;
};

}  // namespace muster::controller
