#include "controller/api/owned_name.h"

#include <fmt/format.h>

#include "common/spec/keys/values.h"

namespace muster::controller {

Result<core::OwnedName> owned_name(const JobAccess& access, std::string_view doing,
                                   const std::string& name, bool shared, const std::string& owner) {
  const std::string what = fmt::format("{} '{}'", doing, spec::shown(name));
  if (shared && !owner.empty())
    return fail(ErrorCode::InvalidArgument, what + ": a shared one has no owner");
  const bool others = !owner.empty() && owner != access.user();
  if ((shared || others) && !access.is_admin())
    return fail(ErrorCode::NotAllowed,
                fmt::format("{}: {} are for admins; ask the person who runs the controller", what,
                            shared ? "shared ones" : "those of other users"));
  core::OwnedName key{.owner = others ? owner : access.user(), .shared = shared, .name = name};
  if (shared) key.owner.clear();
  return key;
}

}  // namespace muster::controller
