#include "common/pki/identity.h"

#include <algorithm>

#include "common/base/names.h"
#include "common/pki/printable.h"

namespace muster::pki {
namespace {

constexpr std::string_view kNode = "node/", kUser = "user/";
static_assert(kNode.size() == kUser.size());

// Not std::isalnum: that depends on the locale.
bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

bool is_cluster_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, is_lower_or_digit);
}

std::string uri_of(const Identity& identity) {
  const std::string begin = std::string(kUriScheme) + identity.cluster + "/";
  switch (identity.role) {
    case Role::Controller: return begin + "controller";
    case Role::Node: return begin + std::string(kNode) + identity.name;
    case Role::User: return begin + std::string(kUser) + identity.name;
  }
  return {};
}

Result<Identity> parse_identity(std::string_view uri) {
  const auto refused = [&] {
    return fail(ErrorCode::InvalidArgument,
                "reading the name '" + printable(uri) +
                    "' of a certificate: it is not muster://CLUSTER/controller, "
                    "muster://CLUSTER/node/NAME or muster://CLUSTER/user/NAME");
  };
  std::string_view rest = uri;
  if (!rest.starts_with(kUriScheme)) return refused();
  rest.remove_prefix(kUriScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return refused();
  Identity identity{.cluster = std::string(rest.substr(0, slash)), .role = {}, .name = {}};
  if (!is_cluster_id(identity.cluster)) return refused();
  rest.remove_prefix(slash + 1);
  if (rest == "controller") return identity;
  if (!rest.starts_with(kNode) && !rest.starts_with(kUser)) return refused();
  identity.role = rest.starts_with(kNode) ? Role::Node : Role::User;
  identity.name = rest.substr(kNode.size());
  if (!is_node_name(identity.name)) return refused();
  return identity;
}

std::string text_of(const Identity& identity) {
  switch (identity.role) {
    case Role::Controller: return "the controller";
    case Role::Node: return "node '" + printable(identity.name) + "'";
    case Role::User: return "user '" + printable(identity.name) + "'";
  }
  return {};
}

std::string controller_host(std::string_view cluster) {
  return "controller." + std::string(cluster) + ".muster";
}

}  // namespace muster::pki
