// GetClusterStatus: what an operator asks first.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "common/proto/proto_time.h"
#include "common/rpc/endpoint_file.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"
#include "controller/api/node_service.h"

namespace muster::controller {
namespace {

void add_phases(v1::GetClusterStatusResponse& response, const core::Ledger& ledger) {
  std::map<core::JobPhase, std::uint32_t> counts;
  for (const auto& [id, job] : ledger.jobs) ++counts[job.phase];
  for (const auto& [phase, jobs] : counts) {
    v1::PhaseCount& one = *response.add_phases();
    one.set_phase(to_v1(phase));
    one.set_jobs(jobs);
  }
}

// Reads the disk, so it runs on the work loop. What cannot be read stays 0.
void add_disk(v1::GetClusterStatusResponse& response, const std::filesystem::path& state_dir) {
  struct statvfs about{};
  if (::statvfs(state_dir.c_str(), &about) == 0) {
    response.set_disk_bytes(static_cast<std::uint64_t>(about.f_blocks) * about.f_frsize);
    response.set_disk_bytes_free(static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize);
  }
  std::error_code error;
  std::uint64_t bytes = 0;
  for (std::filesystem::directory_iterator at(state_dir / "journal", error), end;
       !error && at != end; at.increment(error)) {
    std::error_code gone;
    const std::uintmax_t size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  response.set_journal_bytes(bytes);
}

void add_addresses(v1::GetClusterStatusResponse& response, const std::filesystem::path& file) {
  const auto endpoint = rpc::read_endpoint_file(file);
  if (!endpoint) return;
  if (!endpoint->address.empty()) response.add_addresses(endpoint->address);
  for (const std::string& address : endpoint->tcp) response.add_addresses(address);
  response.set_enrol_address(endpoint->enrol);
}

}  // namespace

void NodeService::add_process(v1::GetClusterStatusResponse& response) const {
  const Now now = edge_.shell.now();
  *response.mutable_now() = to_proto(now.wall);
  *response.mutable_uptime() = to_proto(now.boot - edge_.process.started_at);
  response.set_state_dir(edge_.process.state_dir.string());
  response.set_outputs_root(edge_.new_outputs());
  if (edge_.process.certificate_ends)
    *response.mutable_certificate_ends() = to_proto(edge_.process.certificate_ends());
}

grpc::ServerUnaryReactor* NodeService::GetClusterStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetClusterStatusRequest*,
                                                        v1::GetClusterStatusResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const bool taken = edge_.shell.read([this, reactor, response](const View& view) {
      response->set_cluster_id(view.ledger.cluster.str());
      response->set_generation(view.ledger.lineage.generation);
      response->set_epoch(view.ledger.epoch.value);
      response->set_version(edge_.version);
      response->set_journal_index(edge_.shell.durable().value);
      response->set_nodes(static_cast<std::uint32_t>(view.ledger.nodes.size()));
      const auto connected = std::ranges::count_if(view.ledger.nodes, [&](const auto& entry) {
        return core::is_connected(view.presence, entry.first);
      });
      response->set_nodes_connected(static_cast<std::uint32_t>(connected));
      response->set_jobs_live(static_cast<std::uint32_t>(view.ledger.indexes.live_names.size()));
      response->set_pid(static_cast<std::uint64_t>(::getpid()));
      response->set_protocol_min(protocol_min_);
      response->set_protocol_max(protocol_max_);
      response->set_paused(view.paused);
      add_phases(*response, view.ledger);
      add_process(*response);
      edge_.work.post("cluster-status", [this, reactor, response] {
        add_disk(*response, edge_.process.state_dir);
        add_addresses(*response, edge_.process.endpoint_file);
        response->set_disk_shortage(bounded(edge_.shortage()));
        reactor->Finish(grpc::Status::OK);
      });
    });
    if (!taken) reactor->Finish(overloaded());
  });
}

}  // namespace muster::controller
