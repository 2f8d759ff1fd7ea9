#include "agent/probe/device_book.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::agent::probe {
namespace {

std::string bounded(const std::string& text) {
  return text.size() > kFindingBytesMax ? text.substr(0, kFindingBytesMax) + "..." : text;
}

// The tools report MiB. More than 2^44 of them is no memory, and stays the largest number.
std::uint64_t to_bytes(std::uint64_t mib) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return mib > kMost >> 20U ? kMost : mib << 20U;
}

bool is_card(const v1::Device& device) { return device.type() != to_string(DeviceType::Cpu); }

v1::Device to_v1(const Device& device) {
  v1::Device reported;
  reported.set_id(device.id);
  reported.set_type(std::string(to_string(device.type)));
  if (device.type == DeviceType::Cpu) return reported;
  reported.set_model(device.name);
  reported.set_physical_id(device.physical_id);
  reported.set_bus_id(device.bus_id);
  reported.set_uuid(device.uuid);
  reported.set_memory_bytes(to_bytes(device.memory_total_mib.value_or(0)));
  for (const std::string& address : device.addresses) reported.add_addresses(address);
  reported.set_super_device_id(device.super_device_id.value_or(""));
  reported.set_super_pod_id(device.super_pod_id.value_or(""));
  if (device.server_index) reported.set_server_index(*device.server_index);
  if (device.numa_node && *device.numa_node >= 0)
    reported.set_numa_node(static_cast<std::uint32_t>(*device.numa_node));
  return reported;
}

// Compares what a tool always reports of a card. The type is not compared, because the short name
// in half an answer may not show it.
bool same_card(const v1::Device& known, const v1::Device& seen) {
  const auto agree = [](const std::string& one, const std::string& other) {
    return one.empty() || other.empty() || one == other;
  };
  return known.id() == seen.id() && known.physical_id() == seen.physical_id() &&
         is_card(known) == is_card(seen) && agree(known.bus_id(), seen.bus_id()) &&
         agree(known.uuid(), seen.uuid());
}

void keep_known(const v1::Device& known, v1::Device& seen) {
  if (seen.type() == to_string(DeviceType::AscendOther) && known.type().starts_with(seen.type()))
    seen.set_type(known.type());
  if (seen.model().empty()) seen.set_model(known.model());
  if (seen.bus_id().empty()) seen.set_bus_id(known.bus_id());
  if (seen.uuid().empty()) seen.set_uuid(known.uuid());
  if (seen.memory_bytes() == 0) seen.set_memory_bytes(known.memory_bytes());
  if (seen.addresses().empty()) *seen.mutable_addresses() = known.addresses();
  if (seen.super_device_id().empty()) seen.set_super_device_id(known.super_device_id());
  if (seen.super_pod_id().empty()) seen.set_super_pod_id(known.super_pod_id());
  if (!seen.has_server_index() && known.has_server_index())
    seen.set_server_index(known.server_index());
  if (!seen.has_numa_node() && known.has_numa_node()) seen.set_numa_node(known.numa_node());
}

bool same(const std::vector<v1::Device>& one, const std::vector<v1::Device>& other) {
  return std::ranges::equal(one, other, [](const v1::Device& a, const v1::Device& b) {
    return google::protobuf::util::MessageDifferencer::Equals(a, b);
  });
}

v1::DeviceHealth to_v1(HealthLevel level) {
  switch (level) {
    case HealthLevel::Ok: return v1::DEVICE_HEALTH_OK;
    case HealthLevel::Warning: return v1::DEVICE_HEALTH_WARNING;
    case HealthLevel::Bad: return v1::DEVICE_HEALTH_BAD;
  }
  return v1::DEVICE_HEALTH_UNSPECIFIED;
}

v1::DeviceReading reading_of(const Device& device) {
  v1::DeviceReading reading;
  reading.set_id(device.id);
  reading.set_health(to_v1(device.health.level));
  reading.set_health_text(bounded(device.health.text));
  if (device.memory_used_mib) reading.set_memory_used_bytes(to_bytes(*device.memory_used_mib));
  for (const Occupant& one : device.occupants) {
    if (static_cast<std::size_t>(reading.occupants_size()) == kReadingOccupantsMax) break;
    v1::DeviceOccupant& occupant = *reading.add_occupants();
    occupant.set_pid(static_cast<std::uint64_t>(one.pid));
    occupant.set_name(one.name);
    occupant.set_user(one.user);
    if (one.memory_mib) occupant.set_memory_bytes(to_bytes(*one.memory_mib));
  }
  return reading;
}

v1::DeviceReading unseen(const v1::Device& device, const std::vector<std::string>& findings) {
  v1::DeviceReading reading;
  reading.set_id(device.id());
  reading.set_health(v1::DEVICE_HEALTH_BAD);
  reading.set_health_text(bounded(findings.empty()
                                      ? "the tools do not show it any more"
                                      : "the tools do not show it: " + findings.front()));
  return reading;
}

std::vector<std::string> to_tell(const std::vector<std::string>& findings) {
  std::vector<std::string> reported;
  for (const std::string& finding : findings) {
    if (reported.size() < kFindingsMax) reported.push_back(bounded(finding));
  }
  return reported;
}

}  // namespace

std::vector<v1::Device> to_v1(const std::vector<Device>& devices) {
  std::vector<v1::Device> reported;
  for (const Device& device : devices) reported.push_back(to_v1(device));
  return reported;
}

void DeviceBook::restore(const v1::Inventory& kept, bool this_boot) {
  announced_.assign(kept.devices().begin(), kept.devices().end());
  announced_findings_.assign(kept.findings().begin(), kept.findings().end());
  restored_ = this_boot ? Restored::ThisBoot : Restored::AnotherBoot;
}

bool DeviceBook::failed() const {
  const bool had_cards =
      restored_ != Restored::AnotherBoot && std::ranges::any_of(announced_, is_card);
  const bool has_cards = std::ranges::any_of(
      seen_.devices, [](const Device& device) { return device.type != DeviceType::Cpu; });
  return seen_.devices.empty() || (had_cards && !has_cards);
}

bool DeviceBook::take(Probed probed) {
  seen_ = std::move(probed);
  const auto before = std::exchange(another_, std::nullopt);
  if (failed()) return false;
  std::vector<v1::Device> shown = to_v1(seen_.devices);
  const auto keep_from = [](const std::vector<v1::Device>& known, v1::Device& device) {
    const auto at =
        std::ranges::find_if(known, [&](const v1::Device& one) { return same_card(one, device); });
    if (at != known.end()) keep_known(*at, device);
  };
  for (v1::Device& device : shown) {
    if (restored_ != Restored::AnotherBoot) keep_from(announced_, device);
    if (before) keep_from(*before, device);
  }
  const bool was_restored = std::exchange(restored_, Restored::No) != Restored::No;
  if (same(shown, announced_))
    return was_restored && to_tell(seen_.findings) != announced_findings_;
  const bool twice = before && same(shown, *before);
  another_ = std::move(shown);
  return twice || was_restored || announced_.empty();
}

void DeviceBook::announce() {
  if (another_) announced_ = *std::exchange(another_, std::nullopt);
  announced_findings_ = to_tell(seen_.findings);
}

void DeviceBook::fill(v1::Inventory& inventory) const {
  for (const v1::Device& device : announced_) *inventory.add_devices() = device;
  for (const std::string& finding : announced_findings_) inventory.add_findings(finding);
  if (std::ranges::any_of(announced_, is_card)) inventory.set_probes_devices(true);
}

std::set<std::uint32_t> DeviceBook::ids() const {
  std::set<std::uint32_t> ids;
  for (const v1::Device& device : announced_) ids.insert(device.id());
  return ids;
}

std::map<std::uint32_t, std::uint32_t> DeviceBook::numa_nodes() const {
  std::map<std::uint32_t, std::uint32_t> nodes;
  for (const v1::Device& device : announced_)
    if (device.has_numa_node()) nodes.emplace(device.id(), device.numa_node());
  return nodes;
}

std::vector<v1::DeviceReading> DeviceBook::readings() const {
  std::vector<v1::DeviceReading> readings;
  const std::vector<v1::Device> shown = to_v1(seen_.devices);
  for (const v1::Device& device : announced_) {
    if (!is_card(device)) continue;
    const auto seen =
        std::ranges::find_if(shown, [&](const v1::Device& one) { return same_card(device, one); });
    readings.push_back(
        seen == shown.end()
            ? unseen(device, seen_.findings)
            : reading_of(seen_.devices[static_cast<std::size_t>(seen - shown.begin())]));
  }
  return readings;
}

}  // namespace muster::agent::probe
