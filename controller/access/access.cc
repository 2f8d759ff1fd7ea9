#include "controller/access/access.h"

#include <utility>

#include "common/base/assert.h"

namespace muster::controller {
namespace {

std::string_view doing_to_job(const CallRule& rule) {
  switch (rule.right) {
    case JobRight::Logs: return "reading the logs of";
    case JobRight::Cancel: return "cancelling";
    case JobRight::Env:
    case JobRight::None: break;
  }
  return rule.least == UserRole::User ? "going on from" : "showing what is run by";
}

// "JobService/GetJob"
std::string short_name(std::string_view method) {
  constexpr std::string_view kPackage = "/muster.v1.";
  if (method.starts_with(kPackage)) method.remove_prefix(kPackage.size());
  return std::string(method);
}

}  // namespace

bool JobAccess::may(const std::string& owner) const {
  if (is_socket_ || rule_->right == JobRight::None) return true;
  if (user_.empty()) return false;
  return role_ >= UserRole::Operator || owner_text(owner) == user_ ||
         policy_->others_may.contains(rule_->right);
}

Result<void> JobAccess::check(const std::string& job, const std::string& owner) const {
  if (may(owner)) return {};
  const std::string why = "it is of user '" + owner_text(owner) + "', and you are user '" + user_ +
                          "' with the role '" + std::string(to_string(role_)) +
                          "'; only its owner and operators may";
  if (denials_ != nullptr)
    denials_->note({.user = user_, .method = short_name(rule_->method), .job = job, .why = why});
  return fail(ErrorCode::NotAllowed,
              std::string(doing_to_job(*rule_)) + " job '" + job + "': " + why);
}

void Access::replace(AccessPolicy policy) {
  auto fresh = std::make_shared<const AccessPolicy>(std::move(policy));
  const MutexLock lock(mutex_);
  policy_.swap(fresh);
}

std::shared_ptr<const AccessPolicy> Access::policy() const {
  const MutexLock lock(mutex_);
  return policy_;
}

Result<void> Access::may_call(const pki::Identity& caller, std::string_view method) const {
  auto allowed = controller::may_call(caller, policy()->role_of(caller.name), method);
  if (!allowed && denials_ != nullptr && caller.role == pki::Role::User &&
      allowed.error().code == ErrorCode::NotAllowed)
    denials_->note({.user = caller.name,
                    .method = short_name(method),
                    .job = {},
                    .why = allowed.error().message});
  return allowed;
}

JobAccess Access::of_call(bool is_socket, const std::optional<pki::Identity>& caller,
                          std::string_view method) const {
  JobAccess access;
  access.is_socket_ = is_socket;
  access.own_user_ = own_user_;
  access.rule_ = find_rule(method);
  MUSTER_ASSERT(access.rule_ != nullptr, "a method without a rule");
  access.policy_ = policy();
  access.denials_ = denials_;
  if (is_socket) {
    access.user_ = own_user_;
    access.role_ = UserRole::Admin;
  } else if (caller && caller->role == pki::Role::User) {
    access.user_ = caller->name;
    access.role_ = access.policy_->role_of(caller->name);
  }
  return access;
}

JobAccess Access::again(JobAccess access) const {
  access.policy_ = policy();
  if (!access.is_socket_ && !access.user_.empty())
    access.role_ = access.policy_->role_of(access.user_);
  return access;
}

}  // namespace muster::controller
