// Reads the access file of the controller (--access): which role each user has. Pure, but for
// read_access_file(), which blocks.
//
//   default: user                  # role of users who are not named; absent: user
//   users: {alice: operator}       # role of a user
//   groups: {lab: [bob, carol]}    # lists of users
//   roles: {lab: viewer}           # role of each group
//   others_may: [logs, env]        # what everybody may do to jobs of others: logs, env, cancel
//
// The role in `users` wins; else the highest one of the user's groups; else the default. The file
// has at most kAccessFileMost bytes. InvalidArgument lists every problem, one a line, as
// "FILE:LINE:COLUMN: what".
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "controller/access/user_role.h"

namespace muster::controller {

inline constexpr std::size_t kAccessFileMost = 1 << 20;

struct AccessPolicy {
  UserRole others = UserRole::User;  // of users who are not in `users`
  std::map<std::string, UserRole, std::less<>> users;
  std::set<JobRight> others_may;

  [[nodiscard]] UserRole role_of(std::string_view user) const;
};

// `file`: its name, for problems.
Result<AccessPolicy> parse_access(std::string_view text, const std::string& file);
Result<AccessPolicy> read_access_file(const std::filesystem::path& file);

}  // namespace muster::controller
