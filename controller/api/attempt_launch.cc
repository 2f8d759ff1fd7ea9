#include "controller/api/attempt_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "common/engine/ascend/plog.h"
#include "common/engine/ascend/table_plan.h"
#include "controller/api/archive_read.h"
#include "controller/api/job_ref.h"
#include "controller/api/show_launch.h"
#include "controller/launch/launch.h"

namespace muster::controller {
namespace {

// A copy of everything that the plan of an attempt needs. A table of thousands of ranks takes time,
// so it is not made on the strand.
struct Recorded {
  v1::JobSpec spec;
  v1::ResolvedSpec resolved;
  engine::LaunchRequest request;  // refers to `spec` and `resolved`
  std::string table_sha256;
  v1::NodeResolved node_resolved;  // what the rank's node added
  std::uint32_t first_rank = 0;
  // For a rank of the training inside the script that is rank `first_rank`.
  std::optional<engine::TrainingPlace> inside;
  std::string training_node{};  // RankLaunch.training_node
};
using RecordedPtr = std::shared_ptr<Recorded>;

const core::AttemptRecord* find_attempt(const core::JobRecord& job, std::uint32_t number) {
  return number == 0 ? job.current() : job.attempt(AttemptNo(number));
}

std::string no_attempt(const core::JobRecord& job, std::uint32_t number) {
  return job.attempts.empty() ? "it was not placed yet"
                              : fmt::format("it has no attempt {}", number);
}

RecordedPtr record(const core::JobRecord& job, const core::AttemptRecord& attempt,
                   const std::string& cluster_out) {
  auto recorded = std::make_shared<Recorded>(Recorded{.spec = job.spec,
                                                      .resolved = job.resolved,
                                                      .request = {},
                                                      .table_sha256 = attempt.table_sha256,
                                                      .node_resolved = {}});
  recorded->request = launch_request(job, attempt, cluster_out);
  recorded->request.spec = &recorded->spec;
  recorded->request.resolved = &recorded->resolved;
  return recorded;
}

std::size_t training_ranks(const core::AttemptRecord& attempt) {
  std::size_t count = 0;
  for (const core::NodePart& part : attempt.parts)
    count += std::max<std::size_t>(1, part.placed.devices.size());
  return count;
}

// Adds what the node added when it started the rank, so that the plan shows what the rank really
// got. Nothing is added before the node has reported that.
void add_resolved(v1::RankLaunch& shown, const Recorded& recorded) {
  const auto& programs = recorded.node_resolved.programs();
  const int index = programs.size() == 1 ? 0 : static_cast<int>(shown.rank() - recorded.first_rank);
  if (index < programs.size() && shown.argv_size() > 0) shown.set_argv(0, programs[index]);
  std::map<std::string, v1::EnvValue> env;
  for (v1::EnvValue& value : *shown.mutable_env()) {
    if (!recorded.node_resolved.run_dir().empty() &&
        value.value().starts_with(engine::kRunDirectory))
      value.set_value(recorded.node_resolved.run_dir() +
                      value.value().substr(engine::kRunDirectory.size()));
    env[value.name()] = value;
  }
  for (const std::string& variable : recorded.node_resolved.env()) {
    const std::size_t equals = variable.find('=');
    v1::EnvValue value;
    value.set_name(variable.substr(0, equals));
    value.set_value(variable.substr(equals + 1));
    value.set_source("node");
    env.try_emplace(value.name(), std::move(value));
  }
  shown.clear_env();
  for (auto& [name, value] : env) *shown.add_env() = std::move(value);
}

grpc::Status show_rank(std::uint32_t number, Recorded& recorded,
                       v1::GetRankLaunchResponse& response) {
  const std::uint32_t planned = recorded.inside ? recorded.first_rank : number;
  recorded.request.only = engine::RankRange{.first = planned, .count = 1};
  const auto plan = plan_attempt(recorded.table_sha256, recorded.request);
  if (!plan) return rpc::to_status(plan.error());
  engine::RankPlan rank = *plan->find(planned);
  if (recorded.inside)
    rank = engine::training_rank(recorded.request, rank, number, *recorded.inside);
  fill(*response.mutable_launch(), recorded.request, *plan, rank);
  fill_files(*response.mutable_files(), recorded.request, *plan, {rank.node});
  fill_auxiliaries(*response.mutable_auxiliaries(), recorded.request, *plan, {rank.node});
  add_resolved(*response.mutable_launch(), recorded);
  if (recorded.inside) response.mutable_launch()->set_rank(number);
  response.mutable_launch()->set_training_node(recorded.training_node);
  response.set_attempt(recorded.request.attempt);
  return grpc::Status::OK;
}

std::string why_no_table(const engine::LaunchRequest& request) {
  const v1::JobSpec& spec = *request.spec;
  const engine::Engine* engine = engine::find_engine(spec.engine());
  if (engine == nullptr || engine->by_table == nullptr)
    return fmt::format("ranks of engine {} find each other without one", spec.engine());
  return request.world_size() > 1
             ? "with launch.launcher: msrun ranks find each other by the scheduler"
             : "a single rank needs none";
}

grpc::Status show_table(const std::string& doing, Recorded& recorded,
                        v1::GetRankTableResponse& response) {
  if (engine::rank_table_name(recorded.request).empty())
    return {grpc::StatusCode::NOT_FOUND,
            doing + ": it has none: " + why_no_table(recorded.request)};
  recorded.request.only = engine::RankRange{.first = 0, .count = 1};
  auto plan = plan_attempt(recorded.table_sha256, recorded.request);
  if (!plan) return rpc::to_status(plan.error());
  response.set_name(engine::rank_table_name(recorded.request));
  response.set_content(plan->table->bytes);
  response.set_sha256(plan->table->hash);
  response.set_attempt(recorded.request.attempt);
  return grpc::Status::OK;
}

// Calls `show(job)`, if the caller may see it: on the strand for a job in the ledger; on the
// archive's thread for an archived job.
void with_job(Edge& edge, const JobAccess& access, const std::string& ref,
              grpc::ServerUnaryReactor* reactor, std::function<void(const core::JobRecord&)> show) {
  const auto checked = [access, reactor, show = std::move(show)](const core::JobRecord& job) {
    const auto allowed = access.check(job.id.str(), job.owner);
    if (!allowed) return reactor->Finish(rpc::to_status(allowed.error()));
    show(job);
  };
  const bool taken = edge.shell.read([&edge, ref, reactor, checked](const View& view) {
    const auto found = resolve_job(view.ledger, ref, RefFor::Reading);
    if (!found) return reactor->Finish(rpc::to_status(found.error()));
    if (!found->archived) return checked(view.ledger.jobs.at(found->id));
    read_archived(edge.shell, found->id, false,
                  [reactor, checked](Result<ArchivedRecord> archived) {
                    if (!archived) return reactor->Finish(rpc::to_status(archived.error()));
                    checked(archived->job);
                  });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace

std::string ranks_there(std::size_t ranks, std::size_t inside) {
  const auto numbers = [](std::size_t count) {
    return count > 1 ? fmt::format("ranks 0..{}", count - 1) : std::string("rank 0");
  };
  if (inside == 0) return numbers(ranks);
  return fmt::format("{}, and inside the scripts {} of the training", numbers(ranks),
                     numbers(inside));
}

void get_rank_launch(Edge& edge, const JobAccess& access, const v1::GetRankLaunchRequest* request,
                     v1::GetRankLaunchResponse* response, grpc::ServerUnaryReactor* reactor) {
  with_job(
      edge, access, request->job(), reactor,
      [&edge, request, response, reactor](const core::JobRecord& job) {
        const bool scripts = job.spec.launch().per() == v1::LAUNCH_PER_NODE;
        const bool training = scripts && request->training();
        const std::string doing = fmt::format("showing rank {}{} of job '{}'", request->rank(),
                                              training ? " of the training" : "", job.id.str());
        const core::AttemptRecord* attempt = find_attempt(job, request->attempt());
        if (attempt == nullptr)
          return reactor->Finish(
              {grpc::StatusCode::NOT_FOUND, doing + ": " + no_attempt(job, request->attempt())});
        RecordedPtr recorded = record(job, *attempt, edge.cluster_out);
        std::uint32_t rank = request->rank();
        const auto place = engine::training_place(recorded->request, rank);
        if (training || rank >= attempt->world_size()) {
          if (!place)
            return reactor->Finish(
                {grpc::StatusCode::NOT_FOUND,
                 fmt::format("{}: attempt {} has {}", doing, attempt->number.value,
                             ranks_there(attempt->world_size(),
                                         scripts ? training_ranks(*attempt) : std::size_t{0}))});
          recorded->inside = place;
          rank = attempt->parts[recorded->inside->node].placed.first_rank.value;
          if (!job.spec.launch().intercept())
            return reactor->Finish(
                {grpc::StatusCode::NOT_FOUND,
                 fmt::format(
                     "{}: it is one that the script on node '{}' starts by itself "
                     "(launch.intercept: off), and what that gives it, muster does not see; the "
                     "script's own is that of rank {}",
                     doing, attempt->parts[recorded->inside->node].placed.node.str(), rank)});
        } else if (place && job.spec.launch().intercept()) {
          const core::PlacedNode& placed = attempt->parts[place->node].placed;
          if (placed.first_rank.value != rank) recorded->training_node = placed.node.str();
        }
        for (const core::NodePart& part : attempt->parts) {
          const std::uint32_t first = part.placed.first_rank.value;
          if (rank < first || rank - first >= part.placed.rank_count) continue;
          recorded->node_resolved = part.resolved;
          recorded->first_rank = first;
        }
        edge.work.post("rank-launch", [request, response, reactor, recorded] {
          reactor->Finish(show_rank(request->rank(), *recorded, *response));
        });
      });
}

void get_rank_table(Edge& edge, const JobAccess& access, const v1::GetRankTableRequest* request,
                    v1::GetRankTableResponse* response, grpc::ServerUnaryReactor* reactor) {
  with_job(edge, access, request->job(), reactor,
           [&edge, request, response, reactor](const core::JobRecord& job) {
             const core::AttemptRecord* attempt = find_attempt(job, request->attempt());
             std::string doing = fmt::format("showing the rank table of job '{}'", job.id.str());
             if (attempt == nullptr)
               return reactor->Finish({grpc::StatusCode::NOT_FOUND,
                                       doing + ": " + no_attempt(job, request->attempt())});
             doing += fmt::format(" attempt {}", attempt->number.value);
             RecordedPtr recorded = record(job, *attempt, edge.cluster_out);
             edge.work.post("rank-table", [doing, response, reactor, recorded] {
               reactor->Finish(show_table(doing, *recorded, *response));
             });
           });
}

}  // namespace muster::controller
