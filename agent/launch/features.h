// The features of an order that this agent supports beyond the first release (Inventory.features).
// Plain values.
//
// A controller places a job that needs one of them only on nodes that announce it.
#pragma once

#include <array>
#include <string_view>

namespace muster::agent {

inline constexpr auto kLaunchFeatures = std::to_array<std::string_view>(
    {"launch-files", "auxiliaries", "setup", "last-step", "node-script", "patched-files",
     "containers", "rank-files", "code-patches", "container-limits", "fetch-files"});

}  // namespace muster::agent
