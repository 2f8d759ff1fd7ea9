// The name of something that a user keeps in the cluster for jobs, or that an admin shares with all
// of them. A plain value.
#pragma once

#include <compare>
#include <string>

namespace muster::core {

struct OwnedName {
  std::string owner;    // user; empty: the one who runs the controller, or `shared`
  bool shared = false;  // of all users
  std::string name;
  friend auto operator<=>(const OwnedName&, const OwnedName&) = default;
};

}  // namespace muster::core
