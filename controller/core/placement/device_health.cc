#include "controller/core/placement/device_health.h"

#include <fmt/format.h>

namespace muster::core {
namespace {

std::string occupant_text(const v1::DeviceOccupant& occupant) {
  std::string who = occupant.user();
  if (!occupant.name().empty()) who += (who.empty() ? "" : ", ") + occupant.name();
  return fmt::format("pid {}{}", occupant.pid(), who.empty() ? "" : " (" + who + ")");
}

}  // namespace

bool awaits_probe(const NodeRecord& node, const NodeSeen& seen) {
  return seen.devices.empty() && node.inventory.probes_devices();
}

std::optional<std::string> unusable(const NodeSeen& seen, std::uint32_t device) {
  const auto probed = seen.devices.find(device);
  if (probed == seen.devices.end()) return std::nullopt;
  const v1::DeviceReading& reading = probed->second;
  if (reading.health() == v1::DEVICE_HEALTH_BAD) {
    return fmt::format("device {} is bad{}", device,
                       reading.health_text().empty() ? "" : ": " + reading.health_text());
  }
  if (reading.occupants().empty()) return std::nullopt;
  const int others = reading.occupants_size() - 1;
  return fmt::format("device {} is in use by {}{}", device, occupant_text(reading.occupants(0)),
                     others == 0 ? "" : fmt::format(" and {} more", others));
}

}  // namespace muster::core
