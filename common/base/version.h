// The release, and the agent protocol it speaks. One release of skew is served: kProtocolMin is the
// newest protocol of the release before.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 1;

}  // namespace muster
