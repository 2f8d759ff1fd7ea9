// What operators say of nodes: drain, undrain, label, remove, rename.
#include <chrono>
#include <string>
#include <utility>

#include "common/base/label.h"
#include "common/proto/proto_time.h"
#include "common/spec/keys/values.h"
#include "controller/api/bounded.h"
#include "controller/api/node_answer.h"
#include "controller/api/node_service.h"

namespace muster::controller {
namespace {

constexpr Duration kDeadlineMost = std::chrono::hours(24 * 366);
constexpr int kLabelsMost = 256;  // of one request

std::string doing(std::string_view what, const std::string& name) {
  return std::string(what) + " node '" + spec::shown(name) + "'";
}

// Decides the input, and answers with the node as it is then.
template <class Input, class Response>
void decide(Edge& edge, grpc::ServerUnaryReactor* reactor, Input input, Response* response) {
  NodeName name = input.node;
  if constexpr (requires { input.new_name; }) name = input.new_name;
  const bool taken = edge.shell.submit(
      std::move(input), edge.shell.now(),
      [reactor, response, name = std::move(name)](const Outcome& outcome, const View& view) {
        if (outcome.refusal) return reactor->Finish(rpc::to_status(*outcome.refusal));
        if constexpr (requires { response->mutable_node(); }) {
          if (const auto node = view.ledger.nodes.find(name); node != view.ledger.nodes.end())
            *response->mutable_node() = show_whole_node(node->second, view);
        }
        reactor->Finish(grpc::Status::OK);
      });
  if (!taken) reactor->Finish(overloaded());
}

Result<void> check_labels(const v1::LabelNodeRequest& request) {
  if (request.set_size() + request.remove_size() > kLabelsMost)
    return fail(ErrorCode::InvalidArgument,
                "at most " + std::to_string(kLabelsMost) + " labels at a time");
  if (request.set().empty() && request.remove().empty())
    return fail(ErrorCode::InvalidArgument, "no label is named");
  for (const auto& [key, value] : request.set()) {
    if (auto sound = parse_label(key + "=" + value); !sound)
      return fail(std::move(sound.error()));
    else if (sound->first != key)
      return fail(ErrorCode::InvalidArgument, "a key has no '='");
  }
  for (const std::string& key : request.remove()) {
    if (auto sound = check_label_key(key); !sound) return fail(std::move(sound.error()));
  }
  return {};
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::DrainNode(grpc::CallbackServerContext* context,
                                                 const v1::DrainNodeRequest* request,
                                                 v1::DrainNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const std::string what = doing("draining", request->name());
    if (auto sound = check_reason(request->why(), what); !sound)
      return reactor->Finish(rpc::to_status(sound.error()));
    core::DrainNode input{
        .node = NodeName(request->name()),
        .actor = access_of(edge_, *context, "/muster.v1.NodeService/DrainNode").by(),
        .why = request->why()};
    if (request->has_deadline()) {
      const Duration deadline = to_duration(request->deadline());
      if (deadline < Duration::zero() || deadline > kDeadlineMost)
        return reactor->Finish(rpc::to_status(
            Error{ErrorCode::InvalidArgument, what + ": a deadline is 0s to 366d from now"}));
      input.deadline = deadline;
    }
    decide(edge_, reactor, std::move(input), response);
  });
}

grpc::ServerUnaryReactor* NodeService::UndrainNode(grpc::CallbackServerContext* context,
                                                   const v1::UndrainNodeRequest* request,
                                                   v1::UndrainNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    decide(edge_, reactor,
           core::UndrainNode{
               .node = NodeName(request->name()),
               .actor = access_of(edge_, *context, "/muster.v1.NodeService/UndrainNode").by()},
           response);
  });
}

grpc::ServerUnaryReactor* NodeService::LabelNode(grpc::CallbackServerContext* context,
                                                 const v1::LabelNodeRequest* request,
                                                 v1::LabelNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    if (auto sound = check_labels(*request); !sound)
      return reactor->Finish(
          rpc::to_status(Error(std::move(sound.error())).in(doing("labelling", request->name()))));
    decide(edge_, reactor,
           core::LabelNode{
               .node = NodeName(request->name()),
               .actor = access_of(edge_, *context, "/muster.v1.NodeService/LabelNode").by(),
               .set = {request->set().begin(), request->set().end()},
               .remove = {request->remove().begin(), request->remove().end()}},
           response);
  });
}

grpc::ServerUnaryReactor* NodeService::RemoveNode(grpc::CallbackServerContext* context,
                                                  const v1::RemoveNodeRequest* request,
                                                  v1::RemoveNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    decide(edge_, reactor,
           core::RemoveNode{
               .node = NodeName(request->name()),
               .actor = access_of(edge_, *context, "/muster.v1.NodeService/RemoveNode").by()},
           response);
  });
}

grpc::ServerUnaryReactor* NodeService::RenameNode(grpc::CallbackServerContext* context,
                                                  const v1::RenameNodeRequest* request,
                                                  v1::RenameNodeResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    decide(edge_, reactor,
           core::RenameNode{
               .node = NodeName(request->name()),
               .new_name = NodeName(request->new_name()),
               .actor = access_of(edge_, *context, "/muster.v1.NodeService/RenameNode").by()},
           response);
  });
}

}  // namespace muster::controller
