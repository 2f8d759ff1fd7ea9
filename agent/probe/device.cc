#include "agent/probe/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::agent::probe {
namespace {

struct Named {
  DeviceType type;
  std::string_view name;
};
constexpr Named kTypes[] = {{DeviceType::Ascend910, "ascend910"},
                            {DeviceType::Ascend910b, "ascend910b"},
                            {DeviceType::Ascend910_93, "ascend910_93"},
                            {DeviceType::AscendOther, "ascend"},
                            {DeviceType::Nvidia, "nvidia"},
                            {DeviceType::Cpu, "cpu"}};

}  // namespace

std::string_view to_string(DeviceType type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<DeviceType> device_type(std::string_view name) {
  for (const Named& one : kTypes) {
    if (one.name == name) return one.type;
  }
  return std::nullopt;
}

std::string_view to_string(HealthLevel level) {
  return level == HealthLevel::Ok ? "ok" : level == HealthLevel::Warning ? "warning" : "bad";
}

void Health::add(HealthLevel other, std::string_view why) {
  level = std::max(level, other);
  if (why.empty()) return;
  if (!text.empty()) text += "; ";
  text += why;
}

std::string to_text(const Device& device) {
  std::string out = fmt::format("{} {} '{}'", device.id, to_string(device.type), device.name);
  if (device.physical_id != device.id) out += fmt::format(" physical {}", device.physical_id);
  if (device.type != DeviceType::Cpu) out += fmt::format(" card {}.{}", device.card, device.chip);
  if (!device.bus_id.empty()) out += " bus " + device.bus_id;
  if (!device.uuid.empty()) out += " " + device.uuid;
  if (device.memory_total_mib) {
    out += fmt::format(" memory {}/{} MiB",
                       device.memory_used_mib ? std::to_string(*device.memory_used_mib) : "?",
                       *device.memory_total_mib);
  }
  if (!device.addresses.empty())
    out += fmt::format(" address {}", fmt::join(device.addresses, ","));
  if (device.super_device_id) out += " super device " + *device.super_device_id;
  if (device.super_pod_id) out += " super pod " + *device.super_pod_id;
  if (device.server_index) out += fmt::format(" server {}", *device.server_index);
  if (device.numa_node) out += fmt::format(" numa {}", *device.numa_node);
  out += fmt::format(" {}", to_string(device.health.level));
  if (!device.health.text.empty()) out += " (" + device.health.text + ")";
  for (const Occupant& one : device.occupants) {
    out += fmt::format(" occupied by {}", one.pid);
    if (one.pid_in_container) out += fmt::format(" ({} in its container)", *one.pid_in_container);
    if (!one.name.empty()) out += " '" + one.name + "'";
    if (!one.user.empty()) out += " of " + one.user;
    if (one.memory_mib) out += fmt::format(" {} MiB", *one.memory_mib);
  }
  return out;
}

}  // namespace muster::agent::probe
