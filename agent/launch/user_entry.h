// UserEntry is a user of this node as a start needs one. UserTable looks users up; the process has
// one, which find_user() uses. Thread-safe.
//
// A look-up blocks: it runs the host's getent once for the user and once for the groups
// (common/name_service), each for 5 s at most. It runs on the thread of a start or of a transfer,
// never on the loop. The agent's own user is looked up once, because every start of a job without
// runtime.user needs it. Starts that come during that look-up wait for it and get its result, a
// failure too, so none waits longer than one look-up takes; later starts repeat a failed one. Other
// users are looked up each time, so that a start sees a change of their groups, and never wait for
// the own one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/name_service/getent.h"

namespace muster::agent {

struct UserEntry {
  std::string name, home;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;
};

class UserTable {
 public:
  explicit UserTable(name_service::Tables tables = {}) : tables_(std::move(tables)) {}

  // Empty name: the agent's own user, also one whose number has no name here. The agent's own user
  // has the groups of this process. Errors: NotFound, no such user; Unreachable, the node's tables
  // of users gave no answer.
  Result<UserEntry> find(const std::string& name);

 private:
  struct Own {
    UserEntry entry;
    bool has_name = false;  // without one, the number stands for it
  };
  struct Search {
    std::optional<Result<UserEntry>> result;  // empty: it is under way
  };
  Result<UserEntry> find_own();
  [[nodiscard]] Result<Own> search_own(std::uint32_t uid) const;
  [[nodiscard]] Result<UserEntry> find_named(const std::string& name) const;
  // The own user, if it is known already and has this name.
  std::optional<UserEntry> known_own(const std::string& name);

  const name_service::Tables tables_;
  Mutex mutex_;  // not held during a look-up
  CondVar found_;
  std::optional<Own> own_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<Search> under_way_ MUSTER_GUARDED_BY(mutex_);  // of the own user; null: none
};

Result<UserEntry> find_user(const std::string& name);

}  // namespace muster::agent
