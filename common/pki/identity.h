// Identity says whom a certificate is for. It is a URI in the certificate, and nothing else of the
// certificate names its owner. Pure values; any thread.
//
//   muster://CLUSTER/controller      the cluster's controller
//   muster://CLUSTER/node/NAME       the agent of one node
//   muster://CLUSTER/user/NAME       a user's client
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::pki {

inline constexpr std::string_view kUriScheme = "muster://";

enum class Role : std::uint8_t { Controller, Node, User };

struct Identity {
  std::string cluster;
  Role role = Role::Controller;
  // Of the node or the user, with the rule of nodes (common/base/names.h). The controller has none.
  std::string name;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// 1 to 64 of a-z and 0-9.
[[nodiscard]] bool is_cluster_id(std::string_view text);

[[nodiscard]] std::string uri_of(const Identity& identity);
// Accepts only what uri_of() writes, byte for byte. The error is InvalidArgument.
Result<Identity> parse_identity(std::string_view uri);

// For people: "the controller", "node 'n1'", "user 'ann'".
[[nodiscard]] std::string text_of(const Identity& identity);

// The DNS name in the controller's certificate. Clients insist on it, whatever address they call.
[[nodiscard]] std::string controller_host(std::string_view cluster);

}  // namespace muster::pki
