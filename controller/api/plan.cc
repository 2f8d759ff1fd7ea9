#include "controller/api/plan.h"

#include "common/spec/parse.h"
#include "controller/api/archive_read.h"
#include "controller/api/convert.h"
#include "controller/api/job_ref.h"
#include "controller/launch/launch.h"

namespace muster::controller {
namespace {

void fill(v1::RankLaunch& shown, const engine::RankPlan& rank, const engine::LaunchRequest& request) {
  shown.set_rank(rank.rank);
  shown.set_node(request.nodes[rank.node].name);
  for (const std::string& argument : rank.argv) shown.add_argv(argument);
  shown.set_cwd(rank.cwd);
  for (const auto& [name, value] : rank.env) {
    v1::EnvValue& one = *shown.add_env();
    one.set_name(name);
    one.set_value(value.text);
    one.set_source(value.source);
  }
}

// Nodes that do not exist, to show a plan on while the job would wait.
std::vector<core::PlacedNode> imagine(const v1::JobSpec& spec) {
  const v1::ResourceSpec& wanted = spec.resources();
  const bool once = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  std::vector<core::PlacedNode> nodes;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < wanted.nodes(); ++i) {
    core::PlacedNode node{.node = NodeName("node-" + std::to_string(i)), .address = "127.0.0.1", .first_rank = RankNo(rank)};
    node.devices.assign(wanted.device_ids().begin(), wanted.device_ids().end());
    for (std::uint32_t device = 0; node.devices.size() < wanted.devices(); ++device) node.devices.push_back(device);
    node.rank_count = once ? (i == 0 ? 1 : 0) : static_cast<std::uint32_t>(node.devices.size());
    rank += node.rank_count;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Result<v1::JobSpec> complete_spec(const v1::JobSpec& given) {
  if (given.ByteSizeLong() > spec::kSpecBytesMax) {
    return fail(ErrorCode::InvalidArgument,
                "checking the spec: it has " + std::to_string(given.ByteSizeLong()) + " bytes, at most " + std::to_string(spec::kSpecBytesMax));
  }
  v1::JobSpec spec = given;
  const auto problems = spec::complete(spec);
  if (!problems.empty()) return fail(ErrorCode::InvalidArgument, spec::format(problems, "spec"));
  // Whatever the engine would refuse later is refused now: one node shows it as well as a thousand.
  auto nodes = imagine(spec);
  nodes.resize(1);
  if (auto plan = engine::plan_launch(launch_request(spec, JobId("plan"), AttemptNo(1), nodes, 1, std::nullopt, core::Ledger(), "/")); !plan) {
    return fail(ErrorCode::InvalidArgument, plan.error().message);
  }
  return spec;
}

void plan_job(Edge& edge, const v1::PlanJobRequest* request, v1::PlanJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  auto spec = complete_spec(request->spec());
  if (!spec) return reactor->Finish(rpc::to_status(spec.error()));
  const bool taken = edge.shell.read([&edge, reactor, response, spec = std::move(*spec)](const View& view) mutable {
    core::JobRecord job;
    job.id = JobId("plan");
    job.spec = std::move(spec);
    core::PlaceResult placed = core::place(view.ledger, view.presence, job, view.now, view.limits);
    if (placed.never) return reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION, placed.why});
    if (placed.nodes.empty()) {
      response->set_waits_for(placed.why);
      placed.nodes = imagine(job.spec);
      placed.master_port = view.limits.port_first;
    }
    core::Ledger nodes;  // of these, for their devices' types
    for (const core::PlacedNode& node : placed.nodes) {
      if (const auto known = view.ledger.nodes.find(node.node); known != view.ledger.nodes.end()) nodes.nodes.insert(*known);
    }
    // A plan for thousands of ranks takes its time: not on the strand.
    edge.work.post("plan", [&edge, reactor, response, job = std::move(job), placed = std::move(placed), nodes = std::move(nodes)] {
      const engine::LaunchRequest launch =
          launch_request(job.spec, job.id, AttemptNo(1), placed.nodes, placed.master_port, std::nullopt, nodes, edge.cluster_out);
      const auto plan = engine::plan_launch(launch);
      if (!plan) return reactor->Finish(rpc::to_status(plan.error()));
      for (const core::PlacedNode& node : placed.nodes) *response->add_nodes() = to_v1(core::NodePart{.placed = node});
      for (const engine::RankPlan& rank : plan->ranks) fill(*response->add_ranks(), rank, launch);
      *response->mutable_spec() = job.spec;
      reactor->Finish(grpc::Status::OK);
    });
  });
  if (!taken) reactor->Finish(overloaded());
}

void get_rank_launch(Edge& edge, const v1::GetRankLaunchRequest* request, v1::GetRankLaunchResponse* response, grpc::ServerUnaryReactor* reactor) {
  const auto show = [&edge, request, response, reactor](const core::JobRecord& job, const core::Ledger& ledger) {
    const std::string doing = "showing rank " + std::to_string(request->rank()) + " of job '" + job.id.str() + "'";
    const core::AttemptRecord* attempt = request->attempt() == 0 ? job.current() : job.attempt(AttemptNo(request->attempt()));
    if (attempt == nullptr) {
      const std::string why = job.attempts.empty() ? "it was not placed yet" : "it has no attempt " + std::to_string(request->attempt());
      return reactor->Finish({grpc::StatusCode::NOT_FOUND, doing + ": " + why});
    }
    if (request->rank() >= attempt->world_size()) {
      return reactor->Finish({grpc::StatusCode::NOT_FOUND,
                              doing + ": attempt " + std::to_string(attempt->number.value) + " has ranks 0.." + std::to_string(attempt->world_size() - 1)});
    }
    const engine::LaunchRequest launch = launch_request(job, *attempt, ledger, edge.cluster_out);
    const auto plan = engine::plan_launch(launch);
    if (!plan) return reactor->Finish(rpc::to_status(plan.error()));
    fill(*response->mutable_launch(), plan->ranks[request->rank()], launch);
    response->set_attempt(attempt->number.value);
    reactor->Finish(grpc::Status::OK);
  };
  const bool taken = edge.shell.read([&edge, request, reactor, show](const View& view) {
    const auto ref = resolve_job(view.ledger, request->job());
    if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
    if (!ref->archived) return show(view.ledger.jobs.at(ref->id), view.ledger);
    read_archived(edge.shell, ref->id, false, [reactor, show](Result<ArchivedRecord> record) {
      if (!record) return reactor->Finish(rpc::to_status(record.error()));
      show(record->job, core::Ledger());
    });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
