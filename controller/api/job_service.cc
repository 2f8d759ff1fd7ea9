#include "controller/api/job_service.h"

#include <algorithm>

#include "common/engine/model/engine.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/parse.h"
#include "controller/api/archive_read.h"
#include "controller/api/attempt_launch.h"
#include "controller/api/bounded.h"
#include "controller/api/chain_view.h"
#include "controller/api/complete_spec.h"
#include "controller/api/convert.h"
#include "controller/api/explain_job.h"
#include "controller/api/find_stages.h"
#include "controller/api/last_loss.h"
#include "controller/api/list_jobs.h"
#include "controller/api/plan.h"
#include "controller/api/read_series.h"
#include "controller/api/withhold.h"
#include "controller/api/yaml_spec.h"
#include "controller/core/chains/chains.h"
#include "controller/core/submission_warnings.h"

namespace muster::controller {
namespace {

constexpr std::size_t kRequestIdMax = 128;

Result<Submission> read_submission(const v1::SubmitJobRequest& request) {
  Submission submission{.doing = "submitting"};
  if (request.stages().empty()) {
    if (!request.done().empty())
      return fail(ErrorCode::InvalidArgument,
                  "submitting a job: it has no stages, so none of them can be done");
    auto job = complete_spec(request.spec(), request.fetches());
    if (!job) return fail(std::move(job.error()));
    submission.jobs.push_back(*std::move(job));
    return submission;
  }
  if (request.has_spec())
    return fail(ErrorCode::InvalidArgument,
                "submitting a job: there are both a spec and stages; a chain is its stages alone");
  auto chain = complete_chain(request.stages(), request.done(), request.fetches());
  if (!chain) return fail(std::move(chain.error()));
  submission.jobs = std::move(chain->stages);
  submission.done = std::move(chain->done);
  return submission;
}

// A name for messages. Nothing has checked the request yet.
std::string what_is(const v1::SubmitJobRequest& request) {
  const v1::JobSpec& first = request.stages().empty() ? request.spec() : request.stages(0);
  const std::string& name = first.has_stage() ? first.stage().chain_name() : first.name();
  if (!spec::is_job_name(name)) return "a job";
  return (first.has_stage() ? "chain '" : "job '") + name + "'";
}

// Why the request is refused, whatever it submits. Reading a spec costs more than these checks.
grpc::Status refusal(const Edge& edge, const v1::SubmitJobRequest& request) {
  if (request.request_id().size() > kRequestIdMax)
    return {grpc::StatusCode::INVALID_ARGUMENT, "submitting a job: request_id has " +
                                                    std::to_string(request.request_id().size()) +
                                                    " bytes, at most 128"};
  if (const std::string shortage = edge.shortage ? edge.shortage() : std::string();
      !shortage.empty())
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "submitting " + what_is(request) + ": " + shortage +
                ", new jobs are refused until there is room; running ones go on; submit it again "
                "then"};
  return grpc::Status::OK;
}

void fill_submitted(const View& view, const JobId& job, bool repeated,
                    v1::SubmitJobResponse& response) {
  response.set_job_id(job.str());
  response.set_repeated_request(repeated);
  for (v1::ChainStage& stage : chain_stages(view.ledger, core::chain_of(view.ledger, job)))
    *response.add_stages() = std::move(stage);
  // Empty: an archived job that was requested again by its request id.
  const auto events = view.history.of_job(job, JournalIndex(0));
  response.set_index(events.empty() ? 0 : events.front()->index());
}

bool is_own(const JobAccess& access, const core::Ledger& ledger, const JobId& job) {
  const std::string* owner = owner_of(ledger, job);
  return owner != nullptr && access.owner_text(*owner) == access.user();
}

// An accepted job keeps its outputs where they are, whatever the controller's next start is told.
void keep_outputs_root(const Edge& edge, std::vector<JobToSubmit>& jobs) {
  if (edge.outputs_root.empty()) return;
  for (JobToSubmit& job : jobs) job.resolved.set_outputs_root(edge.outputs_root);
}

// The nodes of its attempt. Empty: it waits.
std::vector<NodeName> placed_on(const core::JobRecord& job) {
  std::vector<NodeName> nodes;
  if (const core::AttemptRecord* attempt = job.current()) {
    for (const core::NodePart& part : attempt->parts) nodes.push_back(part.placed.node);
  }
  return nodes;
}

void add_warnings(const View& view, const std::string& cluster_out,
                  v1::SubmitJobResponse& response) {
  std::vector<JobId> jobs{JobId(response.job_id())};
  for (const v1::ChainStage& stage : response.stages()) {
    if (stage.job_id() != response.job_id()) jobs.emplace_back(stage.job_id());
  }
  for (const JobId& id : jobs) {
    const auto job = view.ledger.jobs.find(id);
    if (job == view.ledger.jobs.end()) continue;
    const core::JobRecord& record = job->second;
    for (const std::string& line : core::submission_warnings(
             {.ledger = view.ledger,
              .presence = view.presence,
              .job = record,
              .out = engine::out_dir(record.spec, record.resolved, id.str(), cluster_out),
              .nodes = placed_on(record),
              .now = view.now,
              .limits = view.limits}))
      response.add_warnings(bounded(line));
  }
}

}  // namespace

grpc::ServerUnaryReactor* JobService::SubmitJob(grpc::CallbackServerContext* context,
                                                const v1::SubmitJobRequest* request,
                                                v1::SubmitJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    if (const grpc::Status refused = refusal(edge_, *request); !refused.ok())
      return reactor->Finish(refused);
    JobAccess access = access_of(edge_, *context, "/muster.v1.JobService/SubmitJob");
    if (!request->has_yaml())
      return start(access, read_submission(*request), request, response, reactor);
    edge_.work.post("yaml", [this, access = std::move(access), request, response, reactor] {
      const auto parsed = with_specs(*request);
      start(access, parsed ? read_submission(*parsed) : Result<Submission>(fail(parsed.error())),
            request, response, reactor);
    });
  });
}

void JobService::start(const JobAccess& access, Result<Submission> submission,
                       const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response,
                       grpc::ServerUnaryReactor* reactor) {
  if (!submission) return reactor->Finish(rpc::to_status(submission.error()));
  const WallTime now = edge_.shell.now().wall;
  for (std::size_t i = 0; i < submission->jobs.size(); ++i)
    submission->ids.push_back(ids_.next(now));
  std::vector<JobId> ids = submission->ids;
  if (is_plain(submission->jobs.front().spec))
    return submit(access.user(), {.jobs = std::move(submission->jobs), .archived = {}},
                  std::move(ids), request, response, reactor);
  const bool taken =
      edge_.shell.read([this, access, request, response, reactor, ids = std::move(ids),
                        submission = *std::move(submission)](const View& view) mutable {
        // The same request id gives the same job, whatever happened to the jobs that it names.
        const RequestId id(request->request_id());
        if (const auto known = view.ledger.indexes.request_ids.find(id);
            !id.empty() && known != view.ledger.indexes.request_ids.end() &&
            is_own(access, view.ledger, known->second)) {
          fill_submitted(view, known->second, true, *response);
          return reactor->Finish(grpc::Status::OK);
        }
        resolve(edge_, access, view, std::move(submission),
                [this, owner = access.user(), request, response, reactor,
                 ids = std::move(ids)](Result<Resolved> resolved) mutable {
                  if (!resolved) return reactor->Finish(rpc::to_status(resolved.error()));
                  submit(owner, *std::move(resolved), std::move(ids), request, response, reactor);
                });
      });
  if (!taken) reactor->Finish(overloaded());
}

void JobService::submit(const std::string& owner, Resolved resolved, std::vector<JobId> ids,
                        const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response,
                        grpc::ServerUnaryReactor* reactor) {
  keep_outputs_root(edge_, resolved.jobs);
  core::SubmitJob input{.job = ids.front(), .request_id = RequestId(request->request_id())};
  input.spec_hash = spec::spec_hash(resolved.jobs.front().spec);
  input.spec = std::move(resolved.jobs.front().spec);
  input.resolved = std::move(resolved.jobs.front().resolved);
  input.archived = std::move(resolved.archived);
  input.owner = owner;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    JobToSubmit& job = resolved.jobs[i];
    std::string hash = spec::spec_hash(job.spec);
    input.behind.push_back({.job = ids[i],
                            .spec = std::move(job.spec),
                            .resolved = std::move(job.resolved),
                            .spec_hash = std::move(hash)});
  }
  const bool taken =
      edge_.shell.submit(std::move(input), edge_.shell.now(),
                         [this, reactor, response](const Outcome& outcome, const View& view) {
                           if (outcome.refusal)
                             return reactor->Finish(rpc::to_status(*outcome.refusal));
                           fill_submitted(view, *outcome.job, outcome.repeated, *response);
                           if (!outcome.repeated) add_warnings(view, edge_.cluster_out, *response);
                           reactor->Finish(grpc::Status::OK);
                         });
  if (!taken) reactor->Finish(overloaded());
}

grpc::ServerUnaryReactor* JobService::FindStages(grpc::CallbackServerContext* context,
                                                 const v1::FindStagesRequest* request,
                                                 v1::FindStagesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    find_stages(edge_, access_of(edge_, *context, "/muster.v1.JobService/FindStages"), request,
                response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::PlanJob(grpc::CallbackServerContext* context,
                                              const v1::PlanJobRequest* request,
                                              v1::PlanJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    plan_job(edge_, access_of(edge_, *context, "/muster.v1.JobService/PlanJob"), request, response,
             reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetRankLaunch(grpc::CallbackServerContext* context,
                                                    const v1::GetRankLaunchRequest* request,
                                                    v1::GetRankLaunchResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    get_rank_launch(edge_, access_of(edge_, *context, "/muster.v1.JobService/GetRankLaunch"),
                    request, response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetRankTable(grpc::CallbackServerContext* context,
                                                   const v1::GetRankTableRequest* request,
                                                   v1::GetRankTableResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    get_rank_table(edge_, access_of(edge_, *context, "/muster.v1.JobService/GetRankTable"), request,
                   response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request,
                                             v1::GetJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    JobAccess access = access_of(edge_, *context, "/muster.v1.JobService/GetJob");
    const bool taken = edge_.shell.read([this, access = std::move(access), reactor, request,
                                         response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job(),
                                   request->name_prefix() ? RefFor::Reading : RefFor::Acting);
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      response->set_asked_for_chain(!ref->chain.empty());
      for (v1::ChainStage& stage : chain_stages(view.ledger, core::chain_of(view.ledger, ref->id)))
        *response->add_chain() = std::move(stage);
      if (!ref->archived) {
        fill(*response, view.ledger.jobs.at(ref->id), view.presence, edge_.cluster_out,
             request->checkpoints_before());
        if (!lacks_loss(response->job())) {
          show_to(access, *response->mutable_job());
          return reactor->Finish(grpc::Status::OK);
        }
        return edge_.work.post("last-loss", [this, access, reactor, response] {
          add_last_loss(*response->mutable_job(), edge_.logs);
          show_to(access, *response->mutable_job());
          reactor->Finish(grpc::Status::OK);
        });
      }
      read_archived(edge_.shell, ref->id, false,
                    [this, access, reactor, request, response](Result<ArchivedRecord> record) {
                      if (!record) return reactor->Finish(rpc::to_status(record.error()));
                      fill(*response, record->job, core::Presence(), edge_.cluster_out,
                           request->checkpoints_before());
                      add_last_loss(*response->mutable_job(), edge_.logs);
                      show_to(access, *response->mutable_job());
                      reactor->Finish(grpc::Status::OK);
                    });
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    list_jobs(edge_, access_of(edge_, *context, "/muster.v1.JobService/ListJobs"), request,
              response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context,
                                                const v1::CancelJobRequest* request,
                                                v1::CancelJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    if (auto sound =
            check_reason(request->reason(), "cancelling job '" + spec::shown(request->job()) + "'");
        !sound)
      return reactor->Finish(rpc::to_status(sound.error()));
    JobAccess access = access_of(edge_, *context, "/muster.v1.JobService/CancelJob");
    const bool taken = edge_.shell.read([this, access = std::move(access), reactor, request,
                                         response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job());
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      const JobId id = ref->id;
      // All jobs of a chain have one owner.
      if (const std::string* owner = owner_of(view.ledger, id))
        if (const auto allowed = access.check(id.str(), *owner); !allowed)
          return reactor->Finish(rpc::to_status(allowed.error()));
      const bool accepted = edge_.shell.submit(
          core::CancelJob{.job = id,
                          .reason = request->reason(),
                          .whole_chain = !ref->chain.empty(),
                          .by = access.by()},
          edge_.shell.now(), [reactor, response, id](const Outcome& outcome, const View& after) {
            if (outcome.refusal) return reactor->Finish(rpc::to_status(*outcome.refusal));
            response->set_job_id(id.str());
            if (const auto job = after.ledger.jobs.find(id); job != after.ledger.jobs.end()) {
              response->set_phase(to_v1(job->second.phase));
            } else if (const auto stone = after.ledger.tombstones.find(id);
                       stone != after.ledger.tombstones.end()) {
              response->set_phase(to_v1(stone->second.phase));
            }
            reactor->Finish(grpc::Status::OK);
          });
      if (!accepted) reactor->Finish(overloaded());
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* JobService::ExplainJob(grpc::CallbackServerContext* context,
                                                 const v1::ExplainJobRequest* request,
                                                 v1::ExplainJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    explain_job(edge_, access_of(edge_, *context, "/muster.v1.JobService/ExplainJob"), request,
                response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::ReadSeries(grpc::CallbackServerContext* context,
                                                 const v1::ReadSeriesRequest* request,
                                                 v1::ReadSeriesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    read_series(edge_, access_of(edge_, *context, "/muster.v1.JobService/ReadSeries"), request,
                response, reactor);
  });
}

grpc::ServerWriteReactor<v1::WatchResponse>* JobService::Watch(grpc::CallbackServerContext* context,
                                                               const v1::WatchRequest* request) {
  return WatchStream::begin(edge_, pacer_,
                            access_of(edge_, *context, "/muster.v1.JobService/Watch"), *request,
                            watch_queue_max_, enter(edge_, context));
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* JobService::ReadLogs(
    grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) {
  return LogStream::begin(edge_, followers_,
                          access_of(edge_, *context, "/muster.v1.JobService/ReadLogs"), *request,
                          enter(edge_, context));
}

}  // namespace muster::controller
