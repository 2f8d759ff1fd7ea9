#include "controller/api/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/engine/model/engine.h"
#include "common/engine/ranktable/words.h"
#include "common/rpc/channel.h"
#include "common/spec/keys/values.h"
#include "controller/api/bounded.h"
#include "controller/api/complete_spec.h"
#include "controller/api/convert.h"
#include "controller/api/resolve_chain.h"
#include "controller/api/show_launch.h"
#include "controller/api/yaml_spec.h"
#include "controller/core/chains/predecessors.h"
#include "controller/core/chains/start_point.h"
#include "controller/core/placement/table_hosts.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"
#include "controller/core/submission_warnings.h"
#include "controller/launch/launch.h"

namespace muster::controller {
namespace {

// Ranks that are planned at once: some 4 KiB for each.
constexpr std::size_t kPlanRanksMost = 16'384;

// Makes nodes that do not exist, to show a plan while the job would wait.
std::vector<core::PlacedNode> imagine(const v1::JobSpec& spec) {
  const v1::ResourceSpec& wanted = spec.resources();
  const auto own = core::read_own_table(spec);
  std::vector<core::PlacedNode> nodes;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < wanted.nodes(); ++i) {
    core::PlacedNode node{.node = NodeName("node-" + std::to_string(i)),
                          .address = "127.0.0.1",
                          .first_rank = RankNo(rank)};
    if (spec.network().interface() != "auto") node.interface = spec.network().interface();
    if (own != nullptr) {
      const ranktable::ServerRanks& ranks = own->order.at(i);
      const ranktable::Server& server = own->table.servers[ranks.server];
      node.node = NodeName(ranktable::shown(server.server_id));
      if (ranktable::parse_address(server.server_id)) node.address = server.server_id;
      for (const std::size_t place : ranks.devices)
        node.devices.push_back(server.devices[place].device_id);
    }
    if (own == nullptr) node.devices.assign(wanted.device_ids().begin(), wanted.device_ids().end());
    for (std::uint32_t device = 0; node.devices.size() < wanted.devices(); ++device)
      node.devices.push_back(device);
    node.rank_count = engine::ranks_on_node(spec, i, node.devices.size());
    rank += node.rank_count;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// A job as it would be submitted.
struct Planned {
  JobToSubmit job;
  std::map<JobId, core::ArchivedEnd> archived = {};
  std::set<JobId> siblings = {};  // ids that replace the stages of its chain
  JobId id = {};
  std::string owner = {};
};

// What the first attempt would begin with. For the checkpoint of a stage that has not run, the step
// is invented.
std::optional<core::ResumePoint> planned_start(const core::JobRecord& job) {
  if (core::starts_behind(job.spec, job.resolved))
    return core::ResumePoint{.attempt = AttemptNo(1), .step = 0, .path = "", .from_start = true};
  return core::known_start(job.resolved);
}

// Fills PlanJob's answer for a placement. The error says why there is none.
Result<void> fill_plan(v1::PlanJobResponse& response, const v1::PlanJobRequest& request,
                       const core::JobRecord& job, const core::PlaceResult& placed,
                       const std::string& cluster_out) {
  engine::LaunchRequest launch =
      launch_request(job.spec, job.resolved, job.id, AttemptNo(1), placed.nodes, placed.master_port,
                     planned_start(job), cluster_out);
  launch.imagined = !response.waits_for().empty();
  const std::set<std::uint32_t> wanted(request.ranks().begin(), request.ranks().end());
  const auto too_many = [&](std::string_view what) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("planning job '{}' of {} ranks: {}; ask for fewer of them (--rank)",
                            job.spec.name(), launch.world_size(), what));
  };
  if (!wanted.empty() && *wanted.rbegin() >= launch.world_size())
    return fail(ErrorCode::NotFound,
                fmt::format("planning job '{}': it has no rank {}; there are ranks 0..{}",
                            job.spec.name(), *wanted.rbegin(), launch.world_size() - 1));
  const std::size_t last = wanted.empty() ? launch.world_size() : *wanted.rbegin() + std::size_t{1};
  const std::size_t first = wanted.empty() ? 0 : std::size_t{*wanted.begin()};
  if (last - first > kPlanRanksMost)
    return too_many(fmt::format("more than {} at once", kPlanRanksMost));
  launch.only = engine::RankRange{.first = static_cast<std::uint32_t>(first),
                                  .count = static_cast<std::uint32_t>(last - first)};
  const auto plan = engine::plan_launch(launch);
  if (!plan) return fail(plan.error());
  for (const core::PlacedNode& node : placed.nodes)
    *response.add_nodes() = to_v1(core::NodePart{.placed = node});
  std::set<std::size_t> nodes;  // of the ranks that are shown
  for (const engine::RankPlan& rank : plan->ranks) {
    if (!wanted.empty() && !wanted.contains(rank.rank)) continue;
    fill(*response.add_ranks(), launch, *plan, rank);
    nodes.insert(rank.node);
  }
  fill_files(*response.mutable_files(), launch, *plan, nodes);
  fill_auxiliaries(*response.mutable_auxiliaries(), launch, *plan, nodes);
  *response.mutable_spec() = job.spec;
  *response.mutable_resolved() = job.resolved;
  if (response.ByteSizeLong() > rpc::kMessageBytesMax) {
    response.Clear();
    return too_many("more than a message holds");
  }
  return {};
}

// The other jobs that the job would wait for first. Empty: none.
std::string behind_whom(const View& view, const Planned& planned) {
  std::set<JobId> unfinished;
  std::string text;  // follows "would wait: "
  const auto add = [&text](std::string_view line) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", line);
  };
  const std::optional<JobId> start = core::starts_behind(planned.job.spec, planned.job.resolved);
  for (const std::string& id : planned.job.resolved.after()) {
    if (planned.siblings.contains(JobId(id))) {
      const auto& dirs = planned.job.resolved.stage().dirs();
      const auto stage = std::ranges::find(dirs, id, &v1::StageDir::job);
      add(fmt::format("for {}{}",
                      stage == dirs.end() ? id : fmt::format("stage '{}'", stage->stage()),
                      start == JobId(id)
                          ? ", whose newest checkpoint is not known yet (shown as that of step 0)"
                          : ""));
      continue;
    }
    const auto one = core::find_predecessor(view.ledger, planned.archived, JobId(id));
    if (one && !core::is_final(one->phase)) unfinished.insert(JobId(id));
  }
  for (const std::string& line : core::waits_for_text(view.ledger, view.presence, unfinished))
    add(line.substr(line.find(' ') + 1));
  return text;
}

void plan_in(Edge& edge, const View& view, Planned planned, const v1::PlanJobRequest* request,
             v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  if (const auto refused = core::refuse_predecessors(view.ledger, planned.archived,
                                                     planned.job.resolved, planned.siblings))
    return reactor->Finish(
        rpc::to_status({refused->code, fmt::format("planning job '{}': {}", planned.job.spec.name(),
                                                   refused->message)}));
  if (const auto refused = core::refuse_stores(view.ledger, planned.job.spec, planned.owner))
    return reactor->Finish(
        rpc::to_status({refused->code, fmt::format("planning job '{}': {}", planned.job.spec.name(),
                                                   refused->message)}));
  if (const auto refused = core::refuse_secrets(view.ledger, planned.job.spec, planned.owner))
    return reactor->Finish(
        rpc::to_status({refused->code, fmt::format("planning job '{}': {}", planned.job.spec.name(),
                                                   refused->message)}));
  response->set_waits_for(behind_whom(view, planned));
  core::JobRecord job;
  job.id = planned.id;
  job.spec = std::move(planned.job.spec);
  job.resolved = std::move(planned.job.resolved);
  job.owner = planned.owner;
  if (!edge.outputs_root.empty()) job.resolved.set_outputs_root(edge.outputs_root);
  core::PlaceResult placed = core::place(view.ledger, view.presence, job, view.now, view.limits);
  std::vector<NodeName> nodes;
  for (const core::PlacedNode& node : placed.nodes) nodes.push_back(node.node);
  for (const std::string& line : core::submission_warnings(
           {.ledger = view.ledger,
            .presence = view.presence,
            .job = job,
            .out = engine::out_dir(job.spec, job.resolved, job.id.str(), edge.cluster_out),
            .nodes = std::move(nodes),
            .now = view.now,
            .limits = view.limits}))
    response->add_warnings(bounded(line));
  if (placed.never) return reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION, placed.why});
  if (placed.nodes.empty() && response->waits_for().empty()) response->set_waits_for(placed.why);
  if (!response->waits_for().empty()) {
    placed.nodes = imagine(job.spec);
    placed.master_port = view.limits.port_first;
  }
  // A plan for thousands of ranks takes time, so it does not run on the strand.
  edge.work.post("plan", [&edge, reactor, request, response, job = std::move(job),
                          placed = std::move(placed)] {
    const auto filled = fill_plan(*response, *request, job, placed, edge.cluster_out);
    reactor->Finish(filled ? grpc::Status::OK : rpc::to_status(filled.error()));
  });
}

struct PlannedSubmission {
  Submission submission;
  std::size_t at = 0;  // which of its jobs is planned
};

Result<PlannedSubmission> read_planned(const v1::PlanJobRequest& request) {
  PlannedSubmission planned{.submission = {.doing = "planning"}};
  if (request.stages().empty()) {
    auto job = complete_spec(request.spec(), {});
    if (!job) return fail(std::move(job.error()));
    planned.submission.jobs.push_back(*std::move(job));
    planned.submission.ids.emplace_back("plan");
    return planned;
  }
  auto chain = complete_chain(request.stages(), {}, {});
  if (!chain) return fail(std::move(chain.error()));
  planned.at = chain->stages.size();
  for (std::size_t i = 0; i < chain->stages.size(); ++i) {
    const std::string& stage = chain->stages[i].spec.stage().name();
    if (stage == request.spec().stage().name()) planned.at = i;
    planned.submission.ids.emplace_back(fmt::format("<id of {}>", stage));
  }
  if (planned.at == chain->stages.size())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("planning chain '{}': stage '{}' is none of its stages", chain->name,
                            spec::shown(request.spec().stage().name())));
  planned.submission.jobs = std::move(chain->stages);
  return planned;
}

void plan(Edge& edge, const JobAccess& access, Result<PlannedSubmission> planned,
          const v1::PlanJobRequest* request, v1::PlanJobResponse* response,
          grpc::ServerUnaryReactor* reactor) {
  if (!planned) return reactor->Finish(rpc::to_status(planned.error()));
  const bool taken = edge.shell.read([&edge, access, reactor, request, response,
                                      planned = *std::move(planned)](const View& view) mutable {
    const std::size_t at = planned.at;
    std::vector<JobId> ids = planned.submission.ids;
    if (is_plain(planned.submission.jobs[at].spec)) {
      Planned plain{
          .job = std::move(planned.submission.jobs[at]), .id = ids[at], .owner = access.user()};
      return plan_in(edge, view, std::move(plain), request, response, reactor);
    }
    resolve(edge, access, view, std::move(planned.submission),
            [&edge, reactor, request, response, at, ids = std::move(ids),
             owner = access.user()](Result<Resolved> resolved) {
              if (!resolved) return reactor->Finish(rpc::to_status(resolved.error()));
              Planned one{.job = std::move(resolved->jobs[at]),
                          .archived = std::move(resolved->archived),
                          .id = ids[at],
                          .owner = owner};
              if (one.job.spec.has_stage()) one.siblings.insert(ids.begin(), ids.end());
              const bool again = edge.shell.read([&edge, reactor, request, response,
                                                  one = std::move(one)](const View& later) mutable {
                plan_in(edge, later, std::move(one), request, response, reactor);
              });
              if (!again) reactor->Finish(overloaded());
            });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace

void plan_job(Edge& edge, const JobAccess& access, const v1::PlanJobRequest* request,
              v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  if (!request->has_yaml())
    return plan(edge, access, read_planned(*request), request, response, reactor);
  edge.work.post("yaml", [&edge, access, request, response, reactor] {
    const auto parsed = with_specs(*request);
    plan(edge, access,
         parsed ? read_planned(*parsed) : Result<PlannedSubmission>(fail(parsed.error())), request,
         response, reactor);
  });
}

}  // namespace muster::controller
