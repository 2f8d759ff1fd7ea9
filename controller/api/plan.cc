#include "controller/api/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "common/engine/ranktable/words.h"
#include "common/rpc/channel.h"
#include "common/spec/parse.h"
#include "controller/api/convert.h"
#include "controller/api/resolve_after.h"
#include "controller/api/show_launch.h"
#include "controller/api/unknown_fields.h"
#include "controller/core/predecessors.h"
#include "controller/core/table_hosts.h"
#include "controller/launch/bounds.h"
#include "controller/launch/launch.h"

namespace muster::controller {
namespace {

constexpr std::size_t kUnknownNamed = 6;
// Ranks that are planned at once: some 4 KiB each.
constexpr std::size_t kPlanRanksMost = 16'384;

// Nodes that do not exist, to show a plan on while the job would wait.
std::vector<core::PlacedNode> imagine(const v1::JobSpec& spec) {
  const v1::ResourceSpec& wanted = spec.resources();
  const auto own = core::read_own_table(spec);
  std::vector<core::PlacedNode> nodes;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < wanted.nodes(); ++i) {
    core::PlacedNode node{.node = NodeName("node-" + std::to_string(i)), .address = "127.0.0.1", .first_rank = RankNo(rank)};
    if (spec.network().interface() != "auto") node.interface = spec.network().interface();
    if (own != nullptr) {
      const ranktable::ServerRanks& ranks = own->order.at(i);
      const ranktable::Server& server = own->table.servers[ranks.server];
      node.node = NodeName(ranktable::shown(server.server_id));
      if (ranktable::parse_address(server.server_id)) node.address = server.server_id;
      for (const std::size_t place : ranks.devices) node.devices.push_back(server.devices[place].device_id);
    }
    if (own == nullptr) node.devices.assign(wanted.device_ids().begin(), wanted.device_ids().end());
    for (std::uint32_t device = 0; node.devices.size() < wanted.devices(); ++device) node.devices.push_back(device);
    node.rank_count = engine::ranks_on_node(spec, i, node.devices.size());
    rank += node.rank_count;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// What PlanJob answers for a placement, or why it cannot.
Result<void> fill_plan(v1::PlanJobResponse& response, const v1::PlanJobRequest& request, const core::JobRecord& job, const core::PlaceResult& placed,
                       const std::string& cluster_out) {
  engine::LaunchRequest launch = launch_request(job.spec, job.id, AttemptNo(1), placed.nodes, placed.master_port, std::nullopt, core::Ledger(), cluster_out);
  launch.imagined = !response.waits_for().empty();
  const std::set<std::uint32_t> wanted(request.ranks().begin(), request.ranks().end());
  const auto too_many = [&](std::string_view what) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("planning job '{}' of {} ranks: {}; ask for fewer of them (--rank)", job.spec.name(), launch.world_size(), what));
  };
  if (!wanted.empty() && *wanted.rbegin() >= launch.world_size())
    return fail(ErrorCode::NotFound,
                fmt::format("planning job '{}': it has no rank {}; there are ranks 0..{}", job.spec.name(), *wanted.rbegin(), launch.world_size() - 1));
  const std::size_t last = wanted.empty() ? launch.world_size() : *wanted.rbegin() + std::size_t{1};
  const std::size_t first = wanted.empty() ? 0 : std::size_t{*wanted.begin()};
  if (last - first > kPlanRanksMost) return too_many(fmt::format("more than {} at once", kPlanRanksMost));
  launch.only = engine::RankRange{.first = static_cast<std::uint32_t>(first), .count = static_cast<std::uint32_t>(last - first)};
  const auto plan = engine::plan_launch(launch);
  if (!plan) return fail(plan.error());
  for (const core::PlacedNode& node : placed.nodes) *response.add_nodes() = to_v1(core::NodePart{.placed = node});
  std::set<std::size_t> nodes;  // of the ranks that are shown
  for (const engine::RankPlan& rank : plan->ranks) {
    if (!wanted.empty() && !wanted.contains(rank.rank)) continue;
    fill(*response.add_ranks(), launch, *plan, rank);
    nodes.insert(rank.node);
  }
  fill_files(*response.mutable_files(), launch, *plan, nodes);
  fill_companions(*response.mutable_companions(), launch, *plan, nodes);
  *response.mutable_spec() = job.spec;
  if (response.ByteSizeLong() > rpc::kMessageBytesMax) {
    response.Clear();
    return too_many("more than a message holds");
  }
  return {};
}

// For which other jobs it would wait first; empty: for none.
std::string behind_whom(const View& view, const ResolvedAfter& resolved) {
  std::set<JobId> unfinished;
  for (const std::string& id : resolved.spec.schedule().after()) {
    const auto one = core::find_predecessor(view.ledger, resolved.archived, JobId(id));
    if (one && !core::is_final(one->phase)) unfinished.insert(JobId(id));
  }
  std::string text;  // behind "would wait: "
  for (const std::string& line : core::waits_for_text(view.ledger, view.presence, unfinished)) {
    text += (text.empty() ? "" : "; ") + line.substr(line.find(' ') + 1);
  }
  return text;
}

void plan_in(Edge& edge, const View& view, ResolvedAfter resolved, const v1::PlanJobRequest* request, v1::PlanJobResponse* response,
             grpc::ServerUnaryReactor* reactor) {
  if (const auto refused = core::refuse_predecessors(view.ledger, resolved.archived, resolved.spec))
    return reactor->Finish(rpc::to_status({refused->code, fmt::format("planning job '{}': {}", resolved.spec.name(), refused->message)}));
  response->set_waits_for(behind_whom(view, resolved));
  core::JobRecord job;
  job.id = JobId("plan");
  job.spec = std::move(resolved.spec);
  core::PlaceResult placed = core::place(view.ledger, view.presence, job, view.now, view.limits);
  if (placed.never) return reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION, placed.why});
  if (placed.nodes.empty() && response->waits_for().empty()) response->set_waits_for(placed.why);
  if (!response->waits_for().empty()) {
    placed.nodes = imagine(job.spec);
    placed.master_port = view.limits.port_first;
  }
  // A plan for thousands of ranks takes its time: not on the strand.
  edge.work.post("plan", [&edge, reactor, request, response, job = std::move(job), placed = std::move(placed)] {
    const auto filled = fill_plan(*response, *request, job, placed, edge.cluster_out);
    reactor->Finish(filled ? grpc::Status::OK : rpc::to_status(filled.error()));
  });
}

}  // namespace

Result<v1::JobSpec> complete_spec(const v1::JobSpec& given) {
  if (given.ByteSizeLong() > spec::kSpecBytesMax) {
    return fail(ErrorCode::InvalidArgument,
                "checking the spec: it has " + std::to_string(given.ByteSizeLong()) + " bytes, at most " + std::to_string(spec::kSpecBytesMax));
  }
  // Before anything is looked at: a key of a newer muster would be ignored here, and once in the journal it would make it unreadable.
  if (const auto unknown = unknown_fields(given); !unknown.empty()) {
    return fail(ErrorCode::InvalidArgument, fmt::format("checking the spec: this controller does not know {}{}; leave out what came with a newer muster, or "
                                                        "upgrade the controller",
                                                        fmt::join(unknown | std::views::take(kUnknownNamed), ", "),
                                                        unknown.size() > kUnknownNamed ? fmt::format(" and {} more", unknown.size() - kUnknownNamed) : ""));
  }
  v1::JobSpec spec = given;
  const auto problems = spec::complete(spec);
  if (!problems.empty()) return fail(ErrorCode::InvalidArgument, spec::format(problems, "spec"));
  // Whatever would be refused at a start is refused now.
  if (auto launches = check_launches(spec); !launches) return fail(ErrorCode::InvalidArgument, launches.error().message);
  return spec;
}

void plan_job(Edge& edge, const v1::PlanJobRequest* request, v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  auto spec = complete_spec(request->spec());
  if (!spec) return reactor->Finish(rpc::to_status(spec.error()));
  const bool taken = edge.shell.read([&edge, reactor, request, response, spec = std::move(*spec)](const View& view) mutable {
    if (spec.schedule().after().empty()) return plan_in(edge, view, {.spec = std::move(spec), .archived = {}}, request, response, reactor);
    const std::string doing = fmt::format("planning job '{}': ", spec.name());
    resolve_after(edge, view, std::move(spec), [&edge, reactor, request, response, doing](Result<ResolvedAfter> resolved) {
      if (!resolved) return reactor->Finish(rpc::to_status({resolved.error().code, doing + resolved.error().message}));
      const bool again = edge.shell.read([&edge, reactor, request, response, resolved = *std::move(resolved)](const View& later) mutable {
        plan_in(edge, later, std::move(resolved), request, response, reactor);
      });
      if (!again) reactor->Finish(overloaded());
    });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
