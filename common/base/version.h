// The release number and the versions of the agent protocol. Plain values.
//
// muster supports one release of skew: kProtocolMin is the newest protocol of the previous release.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 1;

}  // namespace muster
