#include "controller/launch/launch.h"

#include <algorithm>

#include "controller/launch/bounds.h"

namespace muster::controller {
namespace {

std::string device_type(const core::PlacedNode& placed, const core::Ledger& ledger) {
  if (!placed.device_type.empty() || placed.devices.empty()) return placed.device_type;
  const auto known = ledger.nodes.find(placed.node);
  if (known == ledger.nodes.end()) return {};
  const auto& devices = known->second.inventory.devices();
  const auto first = std::ranges::find(devices, placed.devices.front(), &v1::Device::id);
  return first == devices.end() ? std::string() : first->type();
}

}  // namespace

engine::LaunchRequest launch_request(const v1::JobSpec& spec, const JobId& job, AttemptNo attempt, std::span<const core::PlacedNode> nodes,
                                     std::uint16_t master_port, const std::optional<core::ResumePoint>& resume, const core::Ledger& ledger,
                                     const std::string& cluster_out) {
  engine::LaunchRequest request;
  request.spec = &spec;
  request.job_id = job.str();
  request.attempt = attempt.value;
  request.nodes.reserve(nodes.size());
  for (const core::PlacedNode& placed : nodes) {
    request.nodes.push_back({.name = placed.node.str(),
                             .address = placed.address,
                             .devices = placed.devices,
                             .first_rank = placed.first_rank.value,
                             .rank_count = placed.rank_count,
                             .device_type = device_type(placed, ledger)});
  }
  request.master_port = master_port;
  request.out_dir = engine::out_dir(spec, request.job_id, cluster_out);
  request.save_dir = engine::save_dir(spec, request.out_dir, request.attempt);
  if (resume) {
    request.resume_dir = engine::resume_dir(spec, request.out_dir, request.attempt);
    request.resume_step = resume->step;
    request.resume_source = engine::save_dir(spec, request.out_dir, resume->attempt.value);
  }
  return request;
}

engine::LaunchRequest launch_request(const core::JobRecord& job, const core::AttemptRecord& attempt, const core::Ledger& ledger,
                                     const std::string& cluster_out) {
  std::vector<core::PlacedNode> nodes;
  nodes.reserve(attempt.parts.size());
  for (const core::NodePart& part : attempt.parts) nodes.push_back(part.placed);
  return launch_request(job.spec, job.id, attempt.number, nodes, attempt.master_port, attempt.resume, ledger, cluster_out);
}

Result<v1::NodeLaunch> part_launch(const core::JobRecord& job, const core::AttemptRecord& attempt, engine::LaunchRequest& request, std::size_t part) {
  const core::PlacedNode& placed = attempt.parts[part].placed;
  request.spec = &job.spec;
  request.only = engine::RankRange{.first = placed.first_rank.value, .count = placed.rank_count};
  const auto plan = engine::plan_launch(request);
  if (!plan) return fail(plan.error());
  v1::NodeLaunch launch = engine::node_launch(request, *plan, part);
  if (const std::size_t bytes = launch.ByteSizeLong(); bytes > kPartBytesSendable) {
    return fail(ErrorCode::InvalidArgument, "planning job '" + job.spec.name() + "' attempt " + std::to_string(request.attempt) + ": the order for node '" +
                                                placed.node.str() + "' has " + std::to_string(bytes) + " bytes, more than can be sent (" +
                                                std::to_string(kPartBytesSendable) + "); put arguments into a file");
  }
  launch.set_boot_id(placed.boot_id.str());
  launch.set_instance(placed.instance.str());
  launch.set_address(placed.address);
  *launch.mutable_orphan_grace() = job.spec.recovery().orphan_grace();
  *launch.mutable_stop_grace() = job.spec.recovery().stop_grace();
  if (part == 0 && attempt.master_port != 0) launch.add_ports(attempt.master_port);
  launch.set_nofile(job.spec.runtime().limits().nofile());
  launch.set_memlock(job.spec.runtime().limits().memlock());
  if (job.spec.runtime().user() != "submitter") launch.set_user(job.spec.runtime().user());
  return launch;
}

}  // namespace muster::controller
