// What this agent carries out of an order beyond the first release's: Inventory.features. A
// controller places what needs one of them only where it is named.
#pragma once

#include <array>
#include <string_view>

namespace muster::agent {

inline constexpr auto kLaunchFeatures = std::to_array<std::string_view>(
    {"launch-files", "auxiliaries", "setup", "last-step", "node-script", "patched-files",
     "containers", "rank-files", "code-patches", "container-limits", "fetch-files"});

}  // namespace muster::agent
