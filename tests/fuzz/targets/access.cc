// access.yaml: YAML bytes -> roles of users. Whoever is named gets a role, and nobody else does.
#include <string>

#include "common/base/names.h"
#include "controller/access/access_file.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {

void access(std::string_view input) {
  const auto policy = controller::parse_access(input, "access.yaml");
  if (!policy) {
    require(is_message(policy.error().message), "the problems are sentences",
            policy.error().message);
    require(policy.error().message.starts_with("access.yaml:"), "a problem has its place",
            policy.error().message);
    return;
  }
  for (const auto& [user, role] : policy->users) {
    require(is_node_name(user), "a user is one whom a certificate can name", user);
    require(policy->role_of(user) == role, "a user who is named has this role", user);
  }
  require(policy->role_of("nobody-of-this-name-0123456789") == policy->others ||
              policy->users.contains("nobody-of-this-name-0123456789"),
          "a user who is not named has the default");
}

}  // namespace muster::fuzz
