#include "agent/probe/card_network.h"

#include "agent/probe/npu_smi.h"
#include "agent/probe/text.h"

namespace muster::agent::probe {

std::optional<bool> parse_link(std::string_view output) {
  const auto state = fact(output, "link status");
  if (!state || (*state != "UP" && *state != "DOWN")) return std::nullopt;
  return *state == "UP";
}

std::optional<std::string> parse_net_health(std::string_view output) {
  const auto state = fact(output, "net health status");
  if (!state) return std::nullopt;
  if (*state == "Success" || *state == "Init" || *state == "Detect ip set") return "";
  return clean(*state, 40);
}

bool says_no_address(std::string_view output) {
  return output.find("no ip was preset") != std::string_view::npos;
}

}  // namespace muster::agent::probe
