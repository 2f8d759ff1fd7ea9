// Parses what hccn_tool prints about one card's own network: -link -g, -net_health -g. Pure.
//
// For addresses see common/engine/ranktable/hccn.h. The formats come from the manual and the
// sources of hccn_tool: "link status: UP", "net health status: Success", "Get ipconf failed,
// because no ip was preset there!".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::agent::probe {

// "link status: UP" -> true, DOWN -> false.
std::optional<bool> parse_link(std::string_view output);

// Returns the trouble as the tool names it ("Fault", "Receive timeout"). Empty: no trouble
// ("Success"), or not checked: "Init" and "Detect ip set", if the card has no address to ping.
// Returns nullopt if the output has no such line.
std::optional<std::string> parse_net_health(std::string_view output);

// The card exists and has no address. This is normal on A3 nodes that communicate only over HCCS.
bool says_no_address(std::string_view output);

}  // namespace muster::agent::probe
