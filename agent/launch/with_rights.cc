#include "agent/launch/with_rights.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster::agent {

// Uses system calls, which affect only this thread; glibc's setgroups() affects the whole process.
WithRightsOf::WithRightsOf(const UserEntry* user) : user_(user) {
  if (user_ == nullptr) return;
  groups_.resize(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups_.resize(static_cast<std::size_t>(
      std::max(0, ::getgroups(static_cast<int>(groups_.size()), groups_.data()))));
  const std::vector<gid_t> groups(user_->groups.begin(), user_->groups.end());
  ::syscall(SYS_setgroups, groups.size(), groups.data());
  gid_ = static_cast<gid_t>(::setfsgid(user_->gid));
  uid_ = static_cast<uid_t>(::setfsuid(user_->uid));
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
    return std::make_shared<Rights>(user);
  };
}

}  // namespace muster::agent
