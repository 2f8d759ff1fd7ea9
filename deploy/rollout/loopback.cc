#include "deploy/rollout/loopback.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "deploy/hosts/values.h"

namespace muster::rollout {
namespace {

bool is_loopback(std::string_view address) {
  const std::string host = hosts::split_address(address).host;
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

}  // namespace

void mark_loopback(std::vector<Surveyed>& surveyed) {
  Surveyed& controller = surveyed.front();
  const auto other = std::ranges::find_if(surveyed, [&](const Surveyed& one) {
    return one.wanted.role == Role::Agent && !one.error &&
           one.check.machine != controller.check.machine;
  });
  if (controller.error || other == surveyed.end()) return;
  for (const auto& [key, address] :
       {std::pair<std::string_view, std::string_view>("listen", controller.wanted.address),
        {"enrol", enrol_address(controller.wanted)}})
    if (is_loopback(address))
      controller.findings.push_back(
          {.stops = true,
           .text = fmt::format("'{0}: {1}' is reached from the controller's host alone, and node "
                               "'{2}' is on another one; give an address of the network, or "
                               "0.0.0.0, with controller: {{{0}: HOST:PORT}}",
                               key, address, other->wanted.name)});
}

}  // namespace muster::rollout
