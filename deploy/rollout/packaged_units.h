// The units of the Debian package, deploy/package/muster-*.service, as they are in the source tree.
// A unit that `muster deploy` writes is made of the same text. Constant.
#pragma once

#include <string_view>

#include "deploy/rollout/wanted.h"

namespace muster::rollout {

std::string_view packaged_unit(Role role);

// From the line that begins with this text to the one before [Install], a unit is for the package's
// own user and directories.
inline constexpr std::string_view kPackageOnly = "# Only of the package";

}  // namespace muster::rollout
