// NodeService shows the nodes and the cluster, and takes what operators say of nodes. run() in
// main.cc owns it.
// gRPC's threads call it; the work happens on the shell's strand.
#pragma once

#include "controller/api/edge.h"
#include "muster/v1/node_service.grpc.pb.h"

namespace muster::controller {

class NodeService final : public v1::NodeService::CallbackService {
 public:
  NodeService(Edge& edge, std::uint32_t protocol_min, std::uint32_t protocol_max)
      : edge_(edge), protocol_min_(protocol_min), protocol_max_(protocol_max) {}

  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext*, const v1::ListNodesRequest*,
                                      v1::ListNodesResponse*) override;
  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext*, const v1::GetNodeRequest*,
                                    v1::GetNodeResponse*) override;
  grpc::ServerUnaryReactor* DeclareNodeDead(grpc::CallbackServerContext*,
                                            const v1::DeclareNodeDeadRequest*,
                                            v1::DeclareNodeDeadResponse*) override;
  // cluster_status.cc
  grpc::ServerUnaryReactor* GetClusterStatus(grpc::CallbackServerContext*,
                                             const v1::GetClusterStatusRequest*,
                                             v1::GetClusterStatusResponse*) override;
  // node_facts.cc
  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext*, const v1::DrainNodeRequest*,
                                      v1::DrainNodeResponse*) override;
  grpc::ServerUnaryReactor* UndrainNode(grpc::CallbackServerContext*, const v1::UndrainNodeRequest*,
                                        v1::UndrainNodeResponse*) override;
  grpc::ServerUnaryReactor* LabelNode(grpc::CallbackServerContext*, const v1::LabelNodeRequest*,
                                      v1::LabelNodeResponse*) override;
  grpc::ServerUnaryReactor* RemoveNode(grpc::CallbackServerContext*, const v1::RemoveNodeRequest*,
                                       v1::RemoveNodeResponse*) override;
  grpc::ServerUnaryReactor* RenameNode(grpc::CallbackServerContext*, const v1::RenameNodeRequest*,
                                       v1::RenameNodeResponse*) override;

 private:
  void add_process(v1::GetClusterStatusResponse& response) const;

  Edge& edge_;
  std::uint32_t protocol_min_, protocol_max_;
};

}  // namespace muster::controller
