// WithRightsOf lets its thread access the file system as another user. Its creator owns it and
// destroys it on the same thread, which restores the old rights. It affects only that thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "agent/launch/launch_record.h"

namespace muster::agent {

class WithRightsOf {
 public:
  explicit WithRightsOf(const UserEntry* user);  // nullptr: nothing changes
  ~WithRightsOf();
  WithRightsOf(const WithRightsOf&) = delete;
  WithRightsOf& operator=(const WithRightsOf&) = delete;

 private:
  const UserEntry* user_;
  std::vector<gid_t> groups_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
};

// For work that other threads do later. Each call takes the user's rights for the calling thread;
// they end with the returned object, which the same thread must destroy.
std::function<std::shared_ptr<void>()> rights_of(UserEntry user);

}  // namespace muster::agent
