#include "controller/api/node_service.h"

#include "common/spec/keys/values.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"
#include "controller/api/node_answer.h"

namespace muster::controller {

grpc::ServerUnaryReactor* NodeService::ListNodes(grpc::CallbackServerContext* context,
                                                 const v1::ListNodesRequest*,
                                                 v1::ListNodesResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    answer_from_view(edge_, reactor, [response](const View& view) {
      NodeDetail detail = NodeDetail::Full;
      std::size_t bytes = 0;
      const core::OutputsStorage storage(view.presence, view.limits.outputs_root, view.now);
      for (const auto& [name, node] : view.ledger.nodes) {
        v1::Node& one = *response->add_nodes() = show_node(node, view, storage);
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
      *response->mutable_node() = show_whole_node(node->second, view);
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
            *response->mutable_node() = show_whole_node(node->second, view);
          reactor->Finish(grpc::Status::OK);
        });
    if (!taken) reactor->Finish(overloaded());
  });
}

}  // namespace muster::controller
