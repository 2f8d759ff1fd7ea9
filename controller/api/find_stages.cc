#include "controller/api/find_stages.h"

#include <fmt/format.h>

#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "common/engine/model/engine.h"
#include "common/proto/proto_time.h"
#include "controller/api/archive_read.h"
#include "controller/api/complete_spec.h"
#include "controller/api/convert.h"

namespace muster::controller {
namespace {

void add_found(v1::FindStagesResponse& response, const JobAccess& access,
               const core::JobRecord& job, const std::string& key, const std::string& cluster_out) {
  if (!access.may(job.owner)) return;
  if (job.phase != core::JobPhase::Succeeded || key.empty() || job.spec.stage().key() != key)
    return;
  auto creates = engine::creates_path(
      job.spec, engine::out_dir(job.spec, job.resolved, job.id.str(), cluster_out));
  if (!creates || creates->empty()) return;
  v1::FoundStage& found = *response.add_stages();
  found.set_job_name(job.spec.name());
  found.set_job_id(job.id.str());
  found.set_creates(*std::move(creates));
  if (job.ended_at) *found.mutable_ended_at() = to_proto(*job.ended_at);
}

// Reads the archived jobs one after another: each is a separate read.
struct StageLookup {
  Edge& edge;
  JobAccess access;
  v1::FindStagesResponse& response;
  grpc::ServerUnaryReactor* reactor;
  std::vector<std::pair<JobId, std::string>> left;  // with the requested key
};

void continue_stages(std::unique_ptr<StageLookup> lookup) {
  if (lookup->left.empty()) return lookup->reactor->Finish(grpc::Status::OK);
  const auto [id, key] = std::move(lookup->left.back());
  lookup->left.pop_back();
  Shell& shell = lookup->edge.shell;
  read_archived(
      shell, id, false, [lookup = std::move(lookup), key](Result<ArchivedRecord> record) mutable {
        // A job that cannot be read back does not count as done: the stage runs again.
        if (record)
          add_found(lookup->response, lookup->access, record->job, key, lookup->edge.cluster_out);
        continue_stages(std::move(lookup));
      });
}

}  // namespace

JobId newest_stage(const core::Ledger& ledger, const std::string& job_name) {
  const std::size_t dot = job_name.rfind('.');  // a stage's own name has no dot
  if (dot == std::string::npos) return {};
  const std::string chain = job_name.substr(0, dot);
  const auto& chains = ledger.indexes.chains_named;
  for (auto at = chains.upper_bound({chain, JobId(std::string(1, '\x7f'))});
       at != chains.begin() && std::prev(at)->first == chain; --at) {
    for (const JobId& id : ledger.indexes.chains.at(std::prev(at)->second) | std::views::reverse) {
      const auto job = ledger.jobs.find(id);
      const auto stone = ledger.tombstones.find(id);
      if ((job != ledger.jobs.end() && job->second.spec.name() == job_name) ||
          (stone != ledger.tombstones.end() && stone->second.name == job_name))
        return id;
    }
  }
  return {};
}

void find_stages(Edge& edge, const JobAccess& access, const v1::FindStagesRequest* request,
                 v1::FindStagesResponse* response, grpc::ServerUnaryReactor* reactor) {
  if (request->stages_size() > kStagesMax) {
    return reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                            fmt::format("finding stages: {} are asked for, at most {}",
                                        request->stages_size(), kStagesMax)});
  }
  const bool taken = edge.shell.read([&edge, access, request, response, reactor](const View& view) {
    auto lookup = std::make_unique<StageLookup>(StageLookup{
        .edge = edge, .access = access, .response = *response, .reactor = reactor, .left = {}});
    for (const v1::WantedStage& wanted : request->stages()) {
      const JobId id = newest_stage(view.ledger, wanted.job_name());
      if (id.empty()) continue;
      if (const auto job = view.ledger.jobs.find(id); job != view.ledger.jobs.end()) {
        add_found(*response, access, job->second, wanted.key(), edge.cluster_out);
      } else if (view.ledger.tombstones.at(id).phase == core::JobPhase::Succeeded) {
        lookup->left.emplace_back(id, wanted.key());
      }
    }
    continue_stages(std::move(lookup));
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
