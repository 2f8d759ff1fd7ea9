// Access knows what each user may do: the table of calls, the access file, and who asks. main() of
// the controller owns it. Thread-safe.
//
// JobAccess is what one call may do to the jobs that its request names. A service gets it at the
// beginning of the call, and asks it with the owner of each job: the only place where owners are
// compared. It keeps the policy of that moment. A later reload gives an open call no rights; a
// stream that shows what its caller may not see any more ends (Revocations). It must not outlive
// Access.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/pki/identity.h"
#include "controller/access/access_file.h"
#include "controller/access/call_rules.h"
#include "controller/access/denials.h"

namespace muster::controller {

class JobAccess {
 public:
  // `owner`: as recorded; empty: the user who runs the controller.
  [[nodiscard]] bool may(const std::string& owner) const;
  // NotAllowed, with a sentence. Each refusal is noted in denials.log.
  [[nodiscard]] Result<void> check(const std::string& job, const std::string& owner) const;

  // The owner of what this call submits.
  [[nodiscard]] const std::string& user() const { return user_; }
  // Everything of every job.
  [[nodiscard]] bool may_all() const {
    return is_operator() || (!user_.empty() && policy_->others_may.contains(rule_->right));
  }
  // For records of who did it: over the unix socket that is the user who runs the controller.
  [[nodiscard]] const std::string& by() const { return user_; }
  [[nodiscard]] bool is_socket() const { return is_socket_; }
  // Whose share of a bound the call uses. Empty: the unix socket, which has no share.
  [[nodiscard]] std::string counted_user() const { return is_socket_ ? std::string() : user_; }
  // The unix socket is one, too.
  [[nodiscard]] bool is_operator() const {
    return is_socket_ || (!user_.empty() && role_ >= UserRole::Operator);
  }
  [[nodiscard]] bool is_admin() const {
    return is_socket_ || (!user_.empty() && role_ >= UserRole::Admin);
  }
  [[nodiscard]] const std::string& owner_text(const std::string& owner) const {
    return owner.empty() ? own_user_ : owner;
  }

 private:
  friend class Access;
  bool is_socket_ = false;
  std::string user_;  // empty: nobody who may do anything
  std::string own_user_;
  UserRole role_ = UserRole::Viewer;
  const CallRule* rule_ = nullptr;
  std::shared_ptr<const AccessPolicy> policy_;
  Denials* denials_ = nullptr;
};

class Access {
 public:
  // `own_user`: the name of the user who runs the controller. `denials` may be nullptr.
  Access(std::string own_user, AccessPolicy policy, Denials* denials)
      : own_user_(std::move(own_user)),
        denials_(denials),
        policy_(std::make_shared<const AccessPolicy>(std::move(policy))) {}

  void replace(AccessPolicy policy);

  // As in call_rules.h, by the user's role of now.
  Result<void> may_call(const pki::Identity& caller, std::string_view method) const;
  // `is_socket`: the call came over the unix socket.
  [[nodiscard]] JobAccess of_call(bool is_socket, const std::optional<pki::Identity>& caller,
                                  std::string_view method) const;
  // The same call by the policy of now.
  [[nodiscard]] JobAccess again(JobAccess access) const;
  [[nodiscard]] const std::string& own_user() const { return own_user_; }

 private:
  [[nodiscard]] std::shared_ptr<const AccessPolicy> policy() const;

  const std::string own_user_;
  Denials* const denials_;
  mutable Mutex mutex_;
  std::shared_ptr<const AccessPolicy> policy_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
