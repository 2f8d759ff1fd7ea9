#include "controller/api/list_jobs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/api/convert.h"
#include "controller/api/job_page.h"
#include "controller/api/last_loss.h"
#include "controller/api/withhold.h"
#include "controller/core/queue_why.h"

namespace muster::controller {
namespace {

constexpr std::uint32_t kPageDefault = 100, kPageMax = 1'000;

// Whose jobs are asked for. Empty: those of all users.
std::string wanted_owner(const JobAccess& access, const v1::ListJobsRequest& request) {
  if (!request.owner().empty()) return request.owner();
  return request.mine() && !access.is_socket() ? access.user() : std::string();
}

// A page keeps its token when jobs are removed from it: the next one begins where this one ended,
// and no request reads more than one page of the archive.
void show_page(const JobAccess& access, const v1::ListJobsRequest& request,
               v1::ListJobsResponse& response) {
  const std::string wanted = wanted_owner(access, request);
  auto& jobs = *response.mutable_jobs();
  if (!wanted.empty()) {
    const auto others = std::ranges::remove_if(
        jobs, [&](const v1::Job& job) { return access.owner_text(job.owner()) != wanted; });
    jobs.erase(others.begin(), others.end());
  }
  for (v1::Job& job : jobs) show_to(access, job);
}

std::uint32_t count_others(const View& view, const JobAccess& access,
                           const v1::ListJobsRequest& request) {
  const std::string wanted = wanted_owner(access, request);
  if (wanted.empty() || !request.page_token().empty()) return 0;
  return static_cast<std::uint32_t>(std::ranges::count_if(view.ledger.jobs, [&](const auto& job) {
    return access.owner_text(job.second.owner) != wanted &&
           (request.all() || !core::is_final(job.second.phase));
  }));
}

}  // namespace

// Ids sort by time, so a page has the newest ids below the token, from ledger and archive together.
void list_jobs(Edge& edge, const JobAccess& access, const v1::ListJobsRequest* request,
               v1::ListJobsResponse* response, grpc::ServerUnaryReactor* reactor) {
  if (request->page_size() > kPageMax) {
    return reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                            "listing jobs: page_size " + std::to_string(request->page_size()) +
                                " is too much, at most 1000"});
  }
  const std::size_t size = request->page_size() == 0 ? kPageDefault : request->page_size();
  const bool taken =
      edge.shell.read([&edge, access, reactor, request, response, size](const View& view) {
        const auto& jobs = view.ledger.jobs;
        auto at = request->page_token().empty() ? jobs.end()
                                                : jobs.lower_bound(JobId(request->page_token()));
        JobPage page(size);
        std::vector<JobId> queued;
        while (at != jobs.begin() && !page.full()) {
          --at;
          if (!request->all() && core::is_final(at->second.phase)) continue;
          page.add(to_v1(at->second, view.presence, edge.cluster_out, Detail::List));
          if (at->second.phase == core::JobPhase::Queued) queued.push_back(at->first);
        }
        page.explain(core::queue_why(view.ledger, view.presence, queued, view.now, view.limits));
        page.more = at != jobs.begin();
        response->set_others(count_others(view, access, *request));
        if (!request->all()) {
          page.fill(*response);
          show_page(access, *request, *response);
          return reactor->Finish(grpc::Status::OK);
        }
        edge.shell.with_archive(
            "archive-list", [&edge, access, reactor, request, response, size,
                             live = std::move(page)](journal::Journal& journal) mutable {
              auto archived = archived_page(journal, request->page_token(), size, edge.cluster_out);
              if (!archived) return reactor->Finish(rpc::to_status(archived.error()));
              JobPage::merged(std::move(live), std::move(*archived)).fill(*response);
              for (v1::Job& job : *response->mutable_jobs()) add_last_loss(job, edge.logs);
              show_page(access, *request, *response);
              reactor->Finish(grpc::Status::OK);
            });
      });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
