#include "controller/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/engine/model/host_network.h"
#include "common/engine/model/start.h"
#include "common/engine/ranktable/table_text.h"
#include "controller/core/chains/start_point.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/recovery/uploads.h"
#include "controller/launch/bounds.h"

namespace muster::controller {
namespace {

// The ports that must be free on the node before its ranks start.
void add_ports(v1::NodeLaunch& launch, const core::PlacedNode& placed, std::uint16_t master_port) {
  if (master_port != 0) launch.add_ports(master_port);
  // All its ranks share the block, unless the spec sets another one or the engine uses none.
  const auto base = launch.env().find(engine::kHcclBasePort);
  if (placed.hccl_port == 0 || base == launch.env().end() ||
      base->second != std::to_string(placed.hccl_port))
    return;
  for (std::uint32_t port = placed.hccl_port; port < placed.hccl_port + engine::kHcclPorts; ++port)
    launch.add_ports(port);
}

// From a checkpoint of the job's own, from the checkpoint that spec.start names, or from nothing.
void go_on_from(engine::LaunchRequest& request, const std::optional<core::ResumePoint>& point) {
  const v1::JobSpec& spec = *request.spec;
  const v1::ResolvedStart& start = request.resolved->start();
  const bool weights = engine::starts_as_weights(spec);
  if (!point) {
    if (weights && !engine::starts_from_job(spec)) request.start_dir = start.dir();
    return;
  }
  const std::string links = engine::resume_dir(spec, request.out_dir, request.attempt);
  request.resume_step = point->step;
  request.resume_shards = point->shards;
  request.resume_from_start = point->from_start;
  if (!point->from_start)
    request.resume_source = engine::save_dir(spec, request.out_dir, point->attempt.value);
  else
    request.resume_source = point->attempt.value == 0
                                ? start.dir()
                                : fmt::format("{}/attempt-{}", start.dir(), point->attempt.value);
  (point->from_start && weights ? request.start_dir : request.resume_dir) = links;
}

// For checkpoint.storage: local. It finds where the files are. For another job's checkpoint, the
// submission contains that. For a stage's checkpoint, the end of the stage contains it. For an
// attempt of this job, the placement contains it.
void find_holders(engine::LaunchRequest& request, const core::JobRecord& job,
                  const core::AttemptRecord& attempt) {
  if (!core::fetches_files(job.spec)) return;
  for (const v1::StageDir& stage : job.resolved.stage().dirs()) {
    const auto owned = job.owned.find(JobId(stage.job()));
    if (owned != job.owned.end()) request.stage_shards[stage.stage()] = owned->second;
  }
  if (!attempt.resume) return;
  if (!attempt.resume->from_start) {
    if (const core::AttemptRecord* writer = job.attempt(attempt.resume->attempt))
      request.resume_holders = core::owned_shards(job, *writer).holders;
    return;
  }
  for (const v1::ShardHolder& one : job.resolved.start().point().holders())
    request.resume_holders.push_back({.node = NodeName(one.node()),
                                      .first_rank = RankNo(one.first_rank()),
                                      .ranks = one.ranks()});
  constexpr std::string_view kStage = "stage:";
  const std::string_view from = job.spec.start().from();
  if (!from.starts_with(kStage)) return;
  const auto stage = request.stage_shards.find(
      std::string(from.substr(kStage.size(), from.find('/') - kStage.size())));
  if (stage != request.stage_shards.end()) request.resume_holders = stage->second.holders;
}

// The inputs that the node fetches. Their paths were chosen at the submission
// (api/resolve_chain.cc).
void add_staged(v1::NodeLaunch& launch, const core::JobRecord& job,
                const core::AttemptRecord& attempt) {
  for (const core::PinnedInput& one : attempt.inputs) {
    const auto input = std::ranges::find(job.spec.inputs(), one.input, &v1::InputSpec::name);
    const auto path = job.resolved.inputs().find(one.input);
    if (input == job.spec.inputs().end() || path == job.resolved.inputs().end()) continue;
    v1::StagedInput& staged = *launch.add_staged();
    staged.set_name(one.input);
    staged.set_url(input->from());
    staged.set_path(path->second);
    staged.set_root(path->second.substr(0, path->second.rfind("/jobs/" + job.id.str() + "/")));
    *staged.mutable_profile() = one.profile;
    staged.set_secret(one.secret);
    *staged.mutable_include() = input->include();
    if (const auto pin = job.input_pins.find(one.input);
        pin != job.input_pins.end() && !pin->second.anew)
      staged.set_contents_sha256(pin->second.contents_sha256);
    if (path->second == job.resolved.start().dir() && job.spec.start().has_step()) {
      staged.set_step(job.spec.start().step());
      staged.set_layout(job.spec.checkpoint().layout());
    }
  }
}

void add_upload(v1::NodeLaunch& launch, const core::JobRecord& job,
                const core::AttemptRecord& attempt, const core::NodePart& part,
                const std::string& out_dir) {
  v1::OutputUpload& upload = *launch.mutable_upload();
  upload.set_url(job.spec.outputs().to());
  upload.set_dir(out_dir);
  *upload.mutable_profile() = attempt.output->profile;
  upload.set_secret(attempt.output->secret);
  *upload.mutable_include() = job.spec.outputs().include();
  if (job.spec.outputs().has_every()) *upload.mutable_every() = job.spec.outputs().every();
  upload.set_rate_limit(job.spec.outputs().rate_limit());
  upload.set_has_others(attempt.uploaders > 1);
  upload.set_seals(&part == &core::sealing_part(attempt));
  upload.set_node(part.placed.node.str());
}

void add_logs_upload(v1::NodeLaunch& launch, const core::JobRecord& job,
                     const core::AttemptRecord& attempt, const core::NodePart& part) {
  v1::LogUpload& upload = *launch.mutable_logs_upload();
  std::string place = job.spec.outputs().logs_to();
  if (!place.ends_with('/')) place += '/';
  upload.set_url(place + job.id.str());
  *upload.mutable_profile() = attempt.logs_output->profile;
  upload.set_secret(attempt.logs_output->secret);
  if (job.spec.outputs().has_every()) *upload.mutable_every() = job.spec.outputs().every();
  upload.set_rate_limit(job.spec.outputs().rate_limit());
  upload.set_node(part.placed.node.str());
}

}  // namespace

engine::LaunchRequest launch_request(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                                     const JobId& job, AttemptNo attempt,
                                     std::vector<core::PlacedNode> nodes, std::uint16_t master_port,
                                     const std::optional<core::ResumePoint>& resume,
                                     const std::string& cluster_out) {
  engine::LaunchRequest request;
  request.spec = &spec;
  request.resolved = &resolved;
  request.job_id = job.str();
  request.attempt = attempt.value;
  request.nodes = std::move(nodes);
  request.master_port = master_port;
  request.out_dir = engine::out_dir(spec, resolved, request.job_id, cluster_out);
  request.save_dir = engine::save_dir(spec, request.out_dir, request.attempt);
  go_on_from(request, resume);
  return request;
}

engine::LaunchRequest launch_request(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                     const std::string& cluster_out) {
  std::vector<core::PlacedNode> nodes;
  nodes.reserve(attempt.parts.size());
  for (const core::NodePart& part : attempt.parts) nodes.push_back(part.placed);
  engine::LaunchRequest request =
      launch_request(job.spec, job.resolved, job.id, attempt.number, std::move(nodes),
                     attempt.master_port, attempt.resume, cluster_out);
  find_holders(request, job, attempt);
  request.saved = attempt.saved;
  return request;
}

Result<engine::LaunchPlan> plan_attempt(const std::string& table_sha256,
                                        engine::LaunchRequest& request) {
  auto plan = engine::plan_launch(request);
  if (!plan || plan->table == nullptr) return plan;
  if (!table_sha256.empty() && plan->table->hash != table_sha256) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("planning job '{}' attempt {}: its rank table was pinned with sha256 {}, and "
                    "this controller makes another one of the same placement ({}): start the "
                    "version that placed it, or cancel the job",
                    request.spec->name(), request.attempt, table_sha256, plan->table->hash));
  }
  request.table = plan->table;
  return plan;
}

Result<v1::NodeLaunch> part_launch(const core::JobRecord& job, const core::AttemptRecord& attempt,
                                   engine::LaunchRequest& request, std::size_t part) {
  const core::PlacedNode& placed = attempt.parts[part].placed;
  request.spec = &job.spec;
  request.resolved = &job.resolved;
  request.only = engine::RankRange{.first = placed.first_rank.value, .count = placed.rank_count};
  const auto plan = plan_attempt(attempt.table_sha256, request);
  if (!plan) return fail(plan.error());
  v1::NodeLaunch launch = engine::node_launch(request, *plan, part);
  if (placed.rank_count > 0) add_staged(launch, job, attempt);
  if (attempt.output && attempt.parts[part].uploads)
    add_upload(launch, job, attempt, attempt.parts[part], request.out_dir);
  if (attempt.logs_output && attempt.parts[part].uploads_logs)
    add_logs_upload(launch, job, attempt, attempt.parts[part]);
  if (const std::size_t bytes = launch.ByteSizeLong(); bytes > kPartBytesSendable) {
    return fail(ErrorCode::InvalidArgument,
                "planning job '" + job.spec.name() + "' attempt " +
                    std::to_string(request.attempt) + ": the order for node '" + placed.node.str() +
                    "' has " + std::to_string(bytes) + " bytes, more than can be sent (" +
                    std::to_string(kPartBytesSendable) + "); put arguments into a file");
  }
  launch.set_boot_id(placed.boot_id.str());
  launch.set_instance(placed.instance.str());
  launch.set_address(placed.address);
  *launch.mutable_orphan_grace() = job.spec.recovery().orphan_grace();
  *launch.mutable_stop_grace() = job.spec.recovery().stop_grace();
  add_ports(launch, placed, part == 0 ? attempt.master_port : 0);
  if (core::scans_first(job, attempt)) {
    launch.mutable_scan_first()->set_dir(request.save_dir.substr(0, request.save_dir.rfind('/')));
    if (attempt.resume && !attempt.resume->from_start)
      launch.mutable_scan_first()->set_beyond(attempt.resume->step);
  }
  launch.set_nofile(job.spec.runtime().limits().nofile());
  launch.set_memlock(job.spec.runtime().limits().memlock());
  if (job.spec.runtime().user() != "submitter") launch.set_user(job.spec.runtime().user());
  return launch;
}

}  // namespace muster::controller
