// What this agent carries out of an order beyond the first release's: Inventory.features. A controller places what needs one of them only where it is named.
#pragma once

#include <array>
#include <string_view>

namespace muster::agent {

inline constexpr std::array<std::string_view, 3> kLaunchFeatures = {"launch-files", "companions", "setup"};

}  // namespace muster::agent
