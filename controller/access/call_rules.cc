#include "controller/access/call_rules.h"

#include <algorithm>
#include <array>
#include <string>

namespace muster::controller {
namespace {

constexpr auto kSocket = CallerRole::Owner, kNode = CallerRole::Node, kUser = CallerRole::User,
               kAnybody = CallerRole::NodeOrUser;
constexpr auto kViewer = UserRole::Viewer, kSubmitter = UserRole::User,
               kOperator = UserRole::Operator, kAdmin = UserRole::Admin;
constexpr auto kLogs = JobRight::Logs, kEnv = JobRight::Env, kCancel = JobRight::Cancel;
constexpr auto kRefused = Without::Refused, kLess = Without::Less;

// clang-format off
constexpr std::array kRules = {
    CallRule{"/muster.v1.AgentService/Connect", kNode},
    CallRule{"/muster.v1.AgentService/PushLogs", kNode},
    CallRule{"/muster.v1.AgentService/FetchFiles", kNode},
    CallRule{"/muster.v1.AgentService/SendFiles", kNode},
    CallRule{"/muster.v1.AgentService/FetchSecrets", kNode},
    CallRule{"/muster.v1.AgentService/ReportStore", kNode},
    CallRule{"/muster.v1.CertificateService/IssueCertificate", kSocket},
    CallRule{"/muster.v1.CertificateService/ListCertificates", kSocket},
    CallRule{"/muster.v1.CertificateService/RevokeCertificate", kSocket},
    CallRule{"/muster.v1.CertificateService/CreateToken", kUser, kAdmin},  // only personal ones
    CallRule{"/muster.v1.CertificateService/ListTokens", kSocket},
    CallRule{"/muster.v1.CertificateService/RevokeToken", kSocket},
    CallRule{"/muster.v1.CertificateService/ListAuthorities", kSocket},
    CallRule{"/muster.v1.CertificateService/ChangeAuthority", kSocket},
    CallRule{"/muster.v1.JobService/SubmitJob", kUser, kSubmitter, kEnv, kRefused},
    CallRule{"/muster.v1.JobService/FindStages", kUser, kSubmitter, kEnv, kLess},
    CallRule{"/muster.v1.JobService/PlanJob", kUser, kSubmitter, kEnv, kRefused},
    CallRule{"/muster.v1.JobService/GetJob", kUser, kViewer, kEnv, kLess},
    CallRule{"/muster.v1.JobService/ListJobs", kUser, kViewer, kEnv, kLess},
    CallRule{"/muster.v1.JobService/CancelJob", kUser, kSubmitter, kCancel, kRefused},
    CallRule{"/muster.v1.JobService/ExplainJob", kUser, kViewer, kEnv, kRefused},
    CallRule{"/muster.v1.JobService/GetRankLaunch", kUser, kViewer, kEnv, kRefused},
    CallRule{"/muster.v1.JobService/GetRankTable", kUser, kViewer, kEnv, kRefused},
    CallRule{"/muster.v1.JobService/Watch", kUser, kViewer, kEnv, kLess},
    CallRule{"/muster.v1.JobService/ReadLogs", kUser, kViewer, kLogs, kRefused},
    CallRule{"/muster.v1.JobService/ReadSeries", kUser, kViewer, kLogs, kRefused},
    CallRule{"/muster.v1.NodeService/ListNodes", kUser},
    CallRule{"/muster.v1.NodeService/GetNode", kUser},
    CallRule{"/muster.v1.NodeService/DeclareNodeDead", kUser, kOperator},
    CallRule{"/muster.v1.NodeService/GetClusterStatus", kUser},
    CallRule{"/muster.v1.NodeService/DrainNode", kUser, kOperator},
    CallRule{"/muster.v1.NodeService/UndrainNode", kUser, kOperator},
    CallRule{"/muster.v1.NodeService/LabelNode", kUser, kOperator},
    CallRule{"/muster.v1.NodeService/RemoveNode", kUser, kOperator},
    CallRule{"/muster.v1.NodeService/RenameNode", kUser, kOperator},
    CallRule{"/muster.v1.SecretService/SetSecret", kUser, kSubmitter},  // shared ones: admins
    CallRule{"/muster.v1.SecretService/ListSecrets", kUser, kSubmitter},
    CallRule{"/muster.v1.SecretService/RemoveSecret", kUser, kSubmitter},
    CallRule{"/muster.v1.StoreService/SetStore", kUser, kSubmitter},  // shared ones: admins
    CallRule{"/muster.v1.StoreService/ListStores", kUser, kSubmitter},
    CallRule{"/muster.v1.StoreService/CheckStore", kUser, kSubmitter},
    CallRule{"/muster.v1.StoreService/RemoveStore", kUser, kSubmitter},
    CallRule{"/grpc.health.v1.Health/Check", kAnybody},
    CallRule{"/grpc.health.v1.Health/Watch", kAnybody},
    CallRule{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kUser},
};
// clang-format on

bool accepts(CallerRole rule, pki::Role role) {
  switch (rule) {
    case CallerRole::Owner: return false;
    case CallerRole::Node: return role == pki::Role::Node;
    case CallerRole::User: return role == pki::Role::User;
    case CallerRole::NodeOrUser: return role == pki::Role::Node || role == pki::Role::User;
  }
  return false;
}

std::string_view who_may(CallerRole rule) {
  switch (rule) {
    case CallerRole::Owner:
      return "only the user who runs the controller may, on its machine, over its unix socket";
    case CallerRole::Node: return "only a node's agent may";
    case CallerRole::User: return "only a user may";
    case CallerRole::NodeOrUser: return "only a node's agent or a user may";
  }
  return "";
}

}  // namespace

std::span<const CallRule> call_rules() { return kRules; }

const CallRule* find_rule(std::string_view method) {
  const auto* rule = std::ranges::find(kRules, method, &CallRule::method);
  return rule == kRules.end() ? nullptr : rule;
}

Result<void> may_call(const pki::Identity& caller, UserRole role, std::string_view method) {
  const CallRule* rule = find_rule(method);
  if (rule == nullptr)
    return fail(ErrorCode::Unsupported,
                "calling the controller: it has no such method; it is of another release");
  const std::string doing =
      "calling " + std::string(method.substr(1)) + " as " + pki::text_of(caller) + ": ";
  if (!accepts(rule->caller, caller.role))
    return fail(ErrorCode::NotAllowed, doing + std::string(who_may(rule->caller)));
  if (caller.role != pki::Role::User || role >= rule->least) return {};
  return fail(ErrorCode::NotAllowed, doing + "the role '" + std::string(to_string(rule->least)) +
                                         "' is needed, and this user has '" +
                                         std::string(to_string(role)) +
                                         "'; ask the person who runs the controller (--access)");
}

}  // namespace muster::controller
