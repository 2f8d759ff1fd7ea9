// WithRightsOf lets its thread access the file system as another user. Its creator owns it and
// destroys it on the same thread, which restores the old rights. It affects only that thread.
//
// An agent of root may lack the right to become another user (CAP_SETUID, CAP_SETGID). Then it has
// its own rights still, and nothing may be done in the user's name: each user asks check() first.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "agent/launch/launch_record.h"
#include "common/base/error.h"

namespace muster::agent {

class WithRightsOf {
 public:
  explicit WithRightsOf(const UserEntry* user);  // nullptr: nothing changes
  ~WithRightsOf();
  WithRightsOf(const WithRightsOf&) = delete;
  WithRightsOf& operator=(const WithRightsOf&) = delete;

  // NotAllowed: the thread does not have the user's rights.
  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] bool have() const { return error_ == 0; }

 private:
  const UserEntry* user_;
  std::vector<gid_t> groups_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  int error_ = 0;
};

// For work that other threads do later. Each call takes the user's rights for the calling thread;
// they end with the returned object, which the same thread must destroy. Null: it does not get
// them.
std::function<std::shared_ptr<void>()> rights_of(UserEntry user);

}  // namespace muster::agent
