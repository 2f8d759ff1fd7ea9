// Whose secret or store a request means, and whether the caller may mean it. Pure.
//
// Shared ones, and those of other users, are for admins (JobAccess::is_admin): the table of calls
// knows only the role that a call needs at least.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "controller/access/access.h"
#include "controller/core/model/owned_name.h"

namespace muster::controller {

// `doing`: "setting secret". NotAllowed: it is for admins. InvalidArgument: shared, and of an
// owner.
Result<core::OwnedName> owned_name(const JobAccess& access, std::string_view doing,
                                   const std::string& name, bool shared, const std::string& owner);

// Of a request with `name` and `shared`, and perhaps `owner`.
template <class Request>
Result<core::OwnedName> owned_name(const JobAccess& access, std::string_view doing,
                                   const Request& request) {
  if constexpr (requires { request.owner(); })
    return owned_name(access, doing, request.name(), request.shared(), request.owner());
  else
    return owned_name(access, doing, request.name(), request.shared(), {});
}

}  // namespace muster::controller
