#include "controller/launch/launch.h"

namespace muster::controller {

engine::LaunchRequest launch_request(const v1::JobSpec& spec, const JobId& job, AttemptNo attempt, std::span<const core::PlacedNode> nodes,
                                     std::uint16_t master_port, const std::optional<core::ResumePoint>& resume, const core::Ledger& ledger,
                                     const std::string& cluster_out) {
  engine::LaunchRequest request;
  request.spec = &spec;
  request.job_id = job.str();
  request.attempt = attempt.value;
  for (const core::PlacedNode& placed : nodes) {
    engine::NodeSlot slot{.name = placed.node.str(),
                          .address = placed.address,
                          .devices = placed.devices,
                          .first_rank = placed.first_rank.value,
                          .rank_count = placed.rank_count};
    if (const auto known = ledger.nodes.find(placed.node); known != ledger.nodes.end() && !placed.devices.empty()) {
      for (const v1::Device& device : known->second.inventory.devices()) {
        if (device.id() == placed.devices.front()) slot.device_type = device.type();
      }
    }
    request.nodes.push_back(std::move(slot));
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

Result<std::vector<v1::NodeLaunch>> node_launches(const core::JobRecord& job, const core::AttemptRecord& attempt, const core::Ledger& ledger,
                                                  const std::string& cluster_out) {
  const engine::LaunchRequest request = launch_request(job, attempt, ledger, cluster_out);
  auto plan = engine::plan_launch(request);
  if (!plan) return fail(std::move(plan.error()).in("planning attempt " + std::to_string(attempt.number.value) + " of job '" + job.id.str() + "'"));
  std::vector<v1::NodeLaunch> launches;
  launches.reserve(attempt.parts.size());
  for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
    const core::PlacedNode& placed = attempt.parts[i].placed;
    v1::NodeLaunch launch = engine::node_launch(request, *plan, i);
    launch.set_boot_id(placed.boot_id.str());
    launch.set_instance(placed.instance.str());
    launch.set_address(placed.address);
    *launch.mutable_orphan_grace() = job.spec.recovery().orphan_grace();
    *launch.mutable_stop_grace() = job.spec.recovery().stop_grace();
    if (i == 0 && attempt.master_port != 0) launch.add_ports(attempt.master_port);
    launch.set_nofile(job.spec.runtime().limits().nofile());
    launch.set_memlock(job.spec.runtime().limits().memlock());
    if (job.spec.runtime().user() != "submitter") launch.set_user(job.spec.runtime().user());
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace muster::controller
