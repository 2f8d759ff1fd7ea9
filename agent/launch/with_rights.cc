#include "agent/launch/with_rights.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace muster::agent {
namespace {

constexpr unsigned kNoChange = ~0U;

}  // namespace

// Uses system calls, which affect only this thread; glibc's setgroups() affects the whole process.
WithRightsOf::WithRightsOf(const UserEntry* user) : user_(user) {
  if (user_ == nullptr) return;
  groups_.resize(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups_.resize(static_cast<std::size_t>(
      std::max(0, ::getgroups(static_cast<int>(groups_.size()), groups_.data()))));
  const std::vector<gid_t> groups(user_->groups.begin(), user_->groups.end());
  if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0) error_ = errno;
  gid_ = static_cast<gid_t>(::setfsgid(user_->gid));
  uid_ = static_cast<uid_t>(::setfsuid(user_->uid));
  // These two report no error. A call with -1 changes nothing, and returns what is set.
  if (error_ == 0 && (static_cast<gid_t>(::setfsgid(kNoChange)) != user_->gid ||
                      static_cast<uid_t>(::setfsuid(kNoChange)) != user_->uid))
    error_ = EPERM;
}

Result<void> WithRightsOf::check() const {
  if (have()) return {};
  auto failed = fail_errno(
      "taking the rights of user '" + user_->name + "' (" + std::to_string(user_->uid) + ")",
      error_);
  failed.error().code = ErrorCode::NotAllowed;
  failed.error().message += "; the agent needs CAP_SETUID and CAP_SETGID";
  return failed;
}

WithRightsOf::~WithRightsOf() {
  if (user_ == nullptr) return;
  ::setfsuid(uid_);
  ::setfsgid(gid_);
  ::syscall(SYS_setgroups, groups_.size(), groups_.data());
}

std::function<std::shared_ptr<void>()> rights_of(UserEntry user) {
  return [user = std::move(user)] {
    struct Rights {
      explicit Rights(UserEntry whose) : user(std::move(whose)) {}
      UserEntry user;
      WithRightsOf as{&user};
    };
    auto rights = std::make_shared<Rights>(user);
    return rights->as.have() ? rights : nullptr;
  };
}

}  // namespace muster::agent
