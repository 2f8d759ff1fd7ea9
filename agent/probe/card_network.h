// What hccn_tool prints about one card's own network: -link -g, -net_health -g (addresses:
// common/engine/ranktable/hccn.h). Pure. Formats: hccn_tool's manual and sources: "link status:
// UP", "net health status: Success", "Get ipconf failed, because no ip was preset there!".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::agent::probe {

// "link status: UP" -> true, DOWN -> false.
std::optional<bool> parse_link(std::string_view output);

// What is wrong, in the tool's words ("Fault", "Receive timeout"); empty: nothing, or not looked
// at: "Success", and "Init" and "Detect ip set" where nobody gave the card an address to ping.
// Nothing: it said no such line.
std::optional<std::string> parse_net_health(std::string_view output);

// The card is there and nobody gave it an address, which is how A3 nodes stand that only talk over
// HCCS.
bool says_no_address(std::string_view output);

}  // namespace muster::agent::probe
