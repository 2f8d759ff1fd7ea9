// The texts that tell a card's network address: what `hccn_tool -i N -ip -g` prints, and
// /etc/hccn.conf. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::ranktable {

// "ipaddr:192.1.11.10\nnetmask:255.255.255.0". Anything else is no answer.
std::optional<std::string> address_of_tool(std::string_view output);

// Lines "address_0=192.1.11.10" in any order among others; device -> text as it stands. Error: one
// device with two addresses.
Result<std::map<std::uint32_t, std::string>> addresses_of_conf(std::string_view text);

inline constexpr std::size_t kConfBytesMax = 1 << 20;

}  // namespace muster::ranktable
