#include "controller/api/node_service.h"

#include <unistd.h>

#include <algorithm>

#include "common/spec/keys/values.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"

namespace muster::controller {
namespace {

// Below the 4 MiB that gRPC's clients take unless they are configured otherwise. Some hundreds of
// nodes fit in full. Some 2,000 nodes with 16 devices fit with what a list needs, and twice as many
// without readings. Of more nodes only names and addresses fit.
constexpr std::size_t kNodesBytes = 3 << 20;

v1::Node show(const core::NodeRecord& node, const View& view) {
  return to_v1(node, view.ledger, view.presence, view.now.boot, view.limits.silent_after);
}

// The readings of very many devices with many occupants are longer than a message may be.
v1::Node show_one(const core::NodeRecord& node, const View& view) {
  v1::Node shown = show(node, view);
  for (NodeDetail detail = NodeDetail::Full;
       shrink(shown, detail) > kNodesBytes && detail != NodeDetail::Least;)
    detail = less(detail);
  return shown;
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::ListNodes(grpc::CallbackServerContext* context,
                                                 const v1::ListNodesRequest*,
                                                 v1::ListNodesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    answer_from_view(edge_, reactor, [response](const View& view) {
      NodeDetail detail = NodeDetail::Full;
      std::size_t bytes = 0;
      for (const auto& [name, node] : view.ledger.nodes) {
        v1::Node& one = *response->add_nodes() = show(node, view);
        bytes += shrink(one, detail);
        while (bytes > kNodesBytes && detail != NodeDetail::Least) {
          detail = less(detail);
          bytes = 0;
          for (v1::Node& earlier : *response->mutable_nodes()) bytes += shrink(earlier, detail);
        }
      }
      return grpc::Status::OK;
    });
  });
}

grpc::ServerUnaryReactor* NodeService::GetNode(grpc::CallbackServerContext* context,
                                               const v1::GetNodeRequest* request,
                                               v1::GetNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    answer_from_view(edge_, reactor, [request, response](const View& view) -> grpc::Status {
      const auto node = view.ledger.nodes.find(NodeName(request->name()));
      if (node == view.ledger.nodes.end())
        return {grpc::StatusCode::NOT_FOUND, "finding node '" + spec::shown(request->name()) +
                                                 "': no node of this name has registered"};
      *response->mutable_node() = show_one(node->second, view);
      return grpc::Status::OK;
    });
  });
}

grpc::ServerUnaryReactor* NodeService::DeclareNodeDead(grpc::CallbackServerContext* context,
                                                       const v1::DeclareNodeDeadRequest* request,
                                                       v1::DeclareNodeDeadResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    if (auto sound = check_reason(request->reason(),
                                  "declaring node '" + spec::shown(request->name()) + "' dead");
        !sound)
      return reactor->Finish(rpc::to_status(sound.error()));
    const JobAccess access = access_of(edge_, *context, "/muster.v1.NodeService/DeclareNodeDead");
    core::DeclareNodeDead input{
        .node = NodeName(request->name()), .reason = request->reason(), .by = access.by()};
    const bool taken = edge_.shell.submit(
        std::move(input), edge_.shell.now(),
        [reactor, response, name = NodeName(request->name())](const Outcome& outcome,
                                                              const View& view) {
          if (outcome.refusal) return reactor->Finish(rpc::to_status(*outcome.refusal));
          if (const auto node = view.ledger.nodes.find(name); node != view.ledger.nodes.end())
            *response->mutable_node() = show_one(node->second, view);
          reactor->Finish(grpc::Status::OK);
        });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* NodeService::GetClusterStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetClusterStatusRequest*,
                                                        v1::GetClusterStatusResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    answer_from_view(edge_, reactor, [this, response](const View& view) {
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
      return grpc::Status::OK;
    });
  });
}

}  // namespace muster::controller
