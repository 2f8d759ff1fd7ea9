#include "controller/api/job_service.h"

#include <algorithm>

#include "common/engine/model/engine.h"
#include "common/proto/proto_time.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/parse.h"
#include "controller/api/archive_read.h"
#include "controller/api/attempt_launch.h"
#include "controller/api/bounded.h"
#include "controller/api/chain_view.h"
#include "controller/api/complete_spec.h"
#include "controller/api/convert.h"
#include "controller/api/find_stages.h"
#include "controller/api/job_page.h"
#include "controller/api/last_loss.h"
#include "controller/api/plan.h"
#include "controller/api/yaml_spec.h"
#include "controller/core/chains/chains.h"
#include "controller/core/queue_why.h"
#include "controller/core/submission_warnings.h"

namespace muster::controller {
namespace {

constexpr std::size_t kRequestIdMax = 128;
constexpr std::uint32_t kPageDefault = 100, kPageMax = 1'000;

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

void add_warnings(const View& view, const std::string& cluster_out,
                  v1::SubmitJobResponse& response) {
  std::vector<JobId> jobs{JobId(response.job_id())};
  for (const v1::ChainStage& stage : response.stages()) {
    if (stage.job_id() != response.job_id()) jobs.emplace_back(stage.job_id());
  }
  for (const JobId& id : jobs) {
    const auto job = view.ledger.jobs.find(id);
    if (job == view.ledger.jobs.end()) continue;
    const v1::JobSpec& spec = job->second.spec;
    for (const std::string& line :
         core::submission_warnings(view.ledger, spec, engine::out_dir(spec, id.str(), cluster_out)))
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
    if (!request->has_yaml()) return start(read_submission(*request), request, response, reactor);
    edge_.work.post("yaml", [this, request, response, reactor] {
      const auto parsed = with_specs(*request);
      start(parsed ? read_submission(*parsed) : Result<Submission>(fail(parsed.error())), request,
            response, reactor);
    });
  });
}

void JobService::start(Result<Submission> submission, const v1::SubmitJobRequest* request,
                       v1::SubmitJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  if (!submission) return reactor->Finish(rpc::to_status(submission.error()));
  const WallTime now = edge_.shell.now().wall;
  for (std::size_t i = 0; i < submission->jobs.size(); ++i)
    submission->ids.push_back(ids_.next(now));
  std::vector<JobId> ids = submission->ids;
  if (is_plain(submission->jobs.front().spec))
    return submit({.jobs = std::move(submission->jobs), .archived = {}}, std::move(ids), request,
                  response, reactor);
  const bool taken =
      edge_.shell.read([this, request, response, reactor, ids = std::move(ids),
                        submission = *std::move(submission)](const View& view) mutable {
        // The same request id gives the same job, whatever happened to the jobs that it names.
        const RequestId id(request->request_id());
        if (const auto known = view.ledger.indexes.request_ids.find(id);
            !id.empty() && known != view.ledger.indexes.request_ids.end()) {
          fill_submitted(view, known->second, true, *response);
          return reactor->Finish(grpc::Status::OK);
        }
        resolve(edge_, view, std::move(submission),
                [this, request, response, reactor,
                 ids = std::move(ids)](Result<Resolved> resolved) mutable {
                  if (!resolved) return reactor->Finish(rpc::to_status(resolved.error()));
                  submit(*std::move(resolved), std::move(ids), request, response, reactor);
                });
      });
  if (!taken) reactor->Finish(overloaded());
}

void JobService::submit(Resolved resolved, std::vector<JobId> ids,
                        const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response,
                        grpc::ServerUnaryReactor* reactor) {
  core::SubmitJob input{.job = ids.front(), .request_id = RequestId(request->request_id())};
  input.spec_hash = spec::spec_hash(resolved.jobs.front().spec);
  input.spec = std::move(resolved.jobs.front().spec);
  input.resolved = std::move(resolved.jobs.front().resolved);
  input.archived = std::move(resolved.archived);
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
    find_stages(edge_, request, response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::PlanJob(grpc::CallbackServerContext* context,
                                              const v1::PlanJobRequest* request,
                                              v1::PlanJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    plan_job(edge_, request, response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetRankLaunch(grpc::CallbackServerContext* context,
                                                    const v1::GetRankLaunchRequest* request,
                                                    v1::GetRankLaunchResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    get_rank_launch(edge_, request, response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetRankTable(grpc::CallbackServerContext* context,
                                                   const v1::GetRankTableRequest* request,
                                                   v1::GetRankTableResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    get_rank_table(edge_, request, response, reactor);
  });
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request,
                                             v1::GetJobResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const bool taken = edge_.shell.read([this, reactor, request, response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job(),
                                   request->name_prefix() ? RefFor::Reading : RefFor::Acting);
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      response->set_asked_for_chain(!ref->chain.empty());
      for (v1::ChainStage& stage : chain_stages(view.ledger, core::chain_of(view.ledger, ref->id)))
        *response->add_chain() = std::move(stage);
      if (!ref->archived) {
        fill(*response, view.ledger.jobs.at(ref->id), view.presence, edge_.cluster_out,
             request->checkpoints_before());
        if (!lacks_loss(response->job())) return reactor->Finish(grpc::Status::OK);
        return edge_.work.post("last-loss", [this, reactor, response] {
          add_last_loss(*response->mutable_job(), edge_.logs);
          reactor->Finish(grpc::Status::OK);
        });
      }
      read_archived(edge_.shell, ref->id, false,
                    [this, reactor, request, response](Result<ArchivedRecord> record) {
                      if (!record) return reactor->Finish(rpc::to_status(record.error()));
                      fill(*response, record->job, core::Presence(), edge_.cluster_out,
                           request->checkpoints_before());
                      add_last_loss(*response->mutable_job(), edge_.logs);
                      reactor->Finish(grpc::Status::OK);
                    });
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

// Ids sort by time, so a page has the newest ids below the token, from ledger and archive together.
grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    if (request->page_size() > kPageMax) {
      return reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                              "listing jobs: page_size " + std::to_string(request->page_size()) +
                                  " is too much, at most 1000"});
    }
    const std::size_t size = request->page_size() == 0 ? kPageDefault : request->page_size();
    const bool taken = edge_.shell.read([this, reactor, request, response, size](const View& view) {
      const auto& jobs = view.ledger.jobs;
      auto at = request->page_token().empty() ? jobs.end()
                                              : jobs.lower_bound(JobId(request->page_token()));
      JobPage page(size);
      std::vector<JobId> queued;
      while (at != jobs.begin() && !page.full()) {
        --at;
        if (!request->all() && core::is_final(at->second.phase)) continue;
        page.add(to_v1(at->second, view.presence, edge_.cluster_out, Detail::List));
        if (at->second.phase == core::JobPhase::Queued) queued.push_back(at->first);
      }
      page.explain(core::queue_why(view.ledger, view.presence, queued, view.now, view.limits));
      page.more = at != jobs.begin();
      if (!request->all()) {
        page.fill(*response);
        return reactor->Finish(grpc::Status::OK);
      }
      edge_.shell.with_archive(
          "archive-list", [this, reactor, request, response, size,
                           live = std::move(page)](journal::Journal& journal) mutable {
            auto archived = archived_page(journal, request->page_token(), size, edge_.cluster_out);
            if (!archived) return reactor->Finish(rpc::to_status(archived.error()));
            JobPage::merged(std::move(live), std::move(*archived)).fill(*response);
            for (v1::Job& job : *response->mutable_jobs()) add_last_loss(job, edge_.logs);
            reactor->Finish(grpc::Status::OK);
          });
    });
    if (!taken) reactor->Finish(overloaded());
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
    const bool taken = edge_.shell.read([this, reactor, request, response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job());
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      const JobId id = ref->id;
      const bool accepted = edge_.shell.submit(
          core::CancelJob{
              .job = id, .reason = request->reason(), .whole_chain = !ref->chain.empty()},
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
    const bool taken = edge_.shell.read([this, reactor, request, response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job(), RefFor::Reading);
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      const auto fill = [response](const View& shown, const core::JobRecord& job) {
        response->set_job_id(job.id.str());
        response->set_phase(to_v1(job.phase));
        if (!shown.paused.empty()) response->add_lines(bounded(shown.paused, 2 * kShownBytesMost));
        for (const std::string& line :
             core::explain(shown.ledger, shown.presence, job, shown.now, shown.limits))
          response->add_lines(bounded(line, 2 * kShownBytesMost));
      };
      if (!ref->archived) {
        fill(view, view.ledger.jobs.at(ref->id));
        return reactor->Finish(grpc::Status::OK);
      }
      read_archived(
          edge_.shell, ref->id, false, [this, reactor, fill](Result<ArchivedRecord> record) {
            if (!record) return reactor->Finish(rpc::to_status(record.error()));
            const bool again =
                edge_.shell.read([reactor, fill, job = std::move(record->job)](const View& shown) {
                  fill(shown, job);
                  reactor->Finish(grpc::Status::OK);
                });
            if (!again) reactor->Finish(overloaded());
          });
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* JobService::ReadSeries(grpc::CallbackServerContext* context,
                                                 const v1::ReadSeriesRequest* request,
                                                 v1::ReadSeriesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const bool taken = edge_.shell.read([this, reactor, request, response](const View& view) {
      const auto ref = resolve_job(view.ledger, request->job(), RefFor::Reading);
      if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
      edge_.work.post("series-read", [this, reactor, response, id = ref->id] {
        const auto points = edge_.logs.series(id);
        if (!points) return reactor->Finish(rpc::to_status(points.error()));
        for (const logs::SeriesPoint& point : *points) {
          v1::SeriesPoint& one = *response->add_points();
          *one.mutable_at() = to_proto(point.at);
          one.set_attempt(point.attempt.value);
          one.set_step(point.step);
          if (point.has_loss) one.set_loss(point.loss);
        }
        reactor->Finish(grpc::Status::OK);
      });
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerWriteReactor<v1::WatchResponse>* JobService::Watch(grpc::CallbackServerContext* context,
                                                               const v1::WatchRequest* request) {
  return WatchStream::begin(edge_, pacer_, *request, watch_queue_max_, enter(edge_, context));
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* JobService::ReadLogs(
    grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) {
  return LogStream::begin(edge_, followers_, *request, enter(edge_, context));
}

}  // namespace muster::controller
