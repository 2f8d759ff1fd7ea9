#include "controller/access/call_rules.h"

#include <algorithm>
#include <array>
#include <string>

namespace muster::controller {
namespace {

using enum CallerRole;

constexpr std::array kRules = {
    CallRule{"/muster.v1.AgentService/Connect", Node},
    CallRule{"/muster.v1.AgentService/PushLogs", Node},
    CallRule{"/muster.v1.AgentService/FetchFiles", Node},
    CallRule{"/muster.v1.AgentService/SendFiles", Node},
    CallRule{"/muster.v1.CertificateService/IssueCertificate", Owner},
    CallRule{"/muster.v1.JobService/SubmitJob", User},
    CallRule{"/muster.v1.JobService/FindStages", User},
    CallRule{"/muster.v1.JobService/PlanJob", User},
    CallRule{"/muster.v1.JobService/GetJob", User},
    CallRule{"/muster.v1.JobService/ListJobs", User},
    CallRule{"/muster.v1.JobService/CancelJob", User},
    CallRule{"/muster.v1.JobService/ExplainJob", User},
    CallRule{"/muster.v1.JobService/GetRankLaunch", User},
    CallRule{"/muster.v1.JobService/GetRankTable", User},
    CallRule{"/muster.v1.JobService/Watch", User},
    CallRule{"/muster.v1.JobService/ReadLogs", User},
    CallRule{"/muster.v1.JobService/ReadSeries", User},
    CallRule{"/muster.v1.NodeService/ListNodes", User},
    CallRule{"/muster.v1.NodeService/GetNode", User},
    CallRule{"/muster.v1.NodeService/DeclareNodeDead", User},
    CallRule{"/muster.v1.NodeService/GetClusterStatus", User},
    CallRule{"/muster.v1.NodeService/DrainNode", User},
    CallRule{"/muster.v1.NodeService/UndrainNode", User},
    CallRule{"/muster.v1.NodeService/LabelNode", User},
    CallRule{"/muster.v1.NodeService/RemoveNode", User},
    CallRule{"/grpc.health.v1.Health/Check", NodeOrUser},
    CallRule{"/grpc.health.v1.Health/Watch", NodeOrUser},
    CallRule{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", User},
};

bool accepts(CallerRole rule, pki::Role role) {
  switch (rule) {
    case Owner: return false;
    case Node: return role == pki::Role::Node;
    case User: return role == pki::Role::User;
    case NodeOrUser: return role == pki::Role::Node || role == pki::Role::User;
  }
  return false;
}

std::string_view who_may(CallerRole rule) {
  switch (rule) {
    case Owner:
      return "only the user who runs the controller may, on its machine, over its unix socket";
    case Node: return "only a node's agent may";
    case User: return "only a user may";
    case NodeOrUser: return "only a node's agent or a user may";
  }
  return "";
}

}  // namespace

std::span<const CallRule> call_rules() { return kRules; }

Result<void> may_call(const pki::Identity& caller, std::string_view method) {
  const auto rule = std::ranges::find(kRules, method, &CallRule::method);
  if (rule == kRules.end())
    return fail(ErrorCode::Unsupported,
                "calling the controller: it has no such method; it is of another release");
  if (accepts(rule->role, caller.role)) return {};
  return fail(ErrorCode::NotAllowed, "calling " + std::string(method.substr(1)) + " as " +
                                         pki::text_of(caller) + ": " +
                                         std::string(who_may(rule->role)));
}

}  // namespace muster::controller
