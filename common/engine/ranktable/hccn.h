// Parsers of the texts with a card's network address: the output of `hccn_tool -i N -ip -g`, and
// /etc/hccn.conf. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::ranktable {

// Parses "ipaddr:192.1.11.10\nnetmask:255.255.255.0". For any other text there is no address.
std::optional<std::string> address_of_tool(std::string_view output);

// Finds lines such as "address_0=192.1.11.10" in any order among others. Maps each device to its
// address text, unchanged. Error: one device with two addresses.
Result<std::map<std::uint32_t, std::string>> addresses_of_conf(std::string_view text);

inline constexpr std::size_t kConfBytesMax = 1 << 20;

}  // namespace muster::ranktable
