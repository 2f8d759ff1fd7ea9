#include "client/render/device_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "client/render/text.h"

namespace muster::render {
namespace {

constexpr std::string_view kNothing = "-";

const v1::DeviceReading* reading_of(const v1::Node& node, std::uint32_t device) {
  const auto at = std::ranges::find(node.readings(), device, &v1::DeviceReading::id);
  return at == node.readings().end() ? nullptr : &*at;
}

struct Word {
  std::string_view text;
  Tint tint;
};
Word word_of(v1::DeviceHealth health) {
  switch (static_cast<int>(health)) {
    case v1::DEVICE_HEALTH_OK: return {"ok", Tint::Good};
    case v1::DEVICE_HEALTH_WARNING: return {"warning", Tint::Warn};
    case v1::DEVICE_HEALTH_BAD: return {"bad", Tint::Bad};
    default: return {kNothing, Tint::Plain};
  }
}

// Returns "3.3/64.0 GiB", in the unit of the total.
std::string memory_text(const v1::Device& device, const v1::DeviceReading* reading) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  const bool used = reading != nullptr && reading->has_memory_used_bytes();
  const std::string have =
      used ? fmt::format("{:.1f}", static_cast<double>(reading->memory_used_bytes()) / kGib) : "?";
  if (device.memory_bytes() == 0) return used ? have + " GiB" : std::string(kNothing);
  return fmt::format("{}/{:.1f} GiB", have, static_cast<double>(device.memory_bytes()) / kGib);
}

std::string occupant_text(const v1::DeviceOccupant& occupant) {
  std::string who = printable(occupant.user());
  if (!occupant.name().empty()) who += (who.empty() ? "" : ", ") + printable(occupant.name());
  return fmt::format("pid {}{}", occupant.pid(), who.empty() ? "" : " (" + who + ")");
}

std::string use_text(const v1::Node& node, const v1::Device& device,
                     const v1::DeviceReading* reading, const Style& style) {
  std::vector<std::string> uses;
  for (const auto& use : node.uses()) {
    if (use.device() == device.id())
      uses.push_back(fmt::format("{} ({}, attempt {})", printable(use.job_name()), use.job_id(),
                                 use.attempt()));
  }
  if (reading != nullptr && !reading->occupants().empty()) {
    const int more = reading->occupants_size() - 1;
    uses.push_back(
        style.paint(Tint::Warn, occupant_text(reading->occupants(0)) +
                                    (more == 0 ? "" : fmt::format(" and {} more", more))));
  }
  if (!uses.empty()) return fmt::format("{}", fmt::join(uses, "; "));
  return reading != nullptr && reading->health() == v1::DEVICE_HEALTH_BAD ? std::string(kNothing)
                                                                          : "free";
}

std::string or_nothing(std::string text) { return text.empty() ? std::string(kNothing) : text; }

}  // namespace

std::string devices_text(const v1::Node& node) {
  std::map<std::string, std::size_t> kinds;
  for (const auto& device : node.inventory().devices()) ++kinds[device.type()];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds)
    parts.push_back(fmt::format("{} {}", count, printable(kind)));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, " and "));
}

std::string health_text(const v1::Node& node, const Style& style) {
  if (node.readings().empty()) {
    const bool unseen = node.inventory().devices().empty() && !node.inventory().findings().empty();
    return unseen ? style.paint(Tint::Bad, "not seen") : std::string(kNothing);
  }
  std::size_t bad = 0, warnings = 0, occupied = 0, probed = 0;
  for (const auto& reading : node.readings()) {
    bad += reading.health() == v1::DEVICE_HEALTH_BAD ? 1 : 0;
    warnings += reading.health() == v1::DEVICE_HEALTH_WARNING ? 1 : 0;
    probed += reading.health() == v1::DEVICE_HEALTH_UNSPECIFIED ? 0 : 1;
    occupied += reading.occupants().empty() ? 0 : 1;
  }
  std::vector<std::string> parts;
  if (bad > 0) parts.push_back(style.paint(Tint::Bad, fmt::format("{} bad", bad)));
  if (warnings > 0)
    parts.push_back(
        style.paint(Tint::Warn, fmt::format("{} warning{}", warnings, warnings == 1 ? "" : "s")));
  if (occupied > 0) parts.push_back(style.paint(Tint::Warn, fmt::format("{} occupied", occupied)));
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, ", "));
  return probed == 0 ? std::string(kNothing) : style.paint(Tint::Good, "ok");
}

Table device_table(const v1::Node& node, const Style& style, bool wide) {
  Table table{.columns = {{"DEVICE", Align::Right},
                          {"PHYSICAL", Align::Right},
                          {"TYPE"},
                          {"MODEL"},
                          {"HEALTH"},
                          {"MEMORY", Align::Right},
                          {"NUMA", Align::Right},
                          {"BUS"},
                          {"ADDRESS"},
                          {"SUPER-POD"},
                          {"IN USE BY"}},
              .rows = {}};
  for (const auto& device : node.inventory().devices()) {
    const v1::DeviceReading* reading = reading_of(node, device.id());
    const Word health =
        word_of(reading == nullptr ? v1::DEVICE_HEALTH_UNSPECIFIED : reading->health());
    const bool renumbered = device.has_physical_id() && device.physical_id() != device.id();
    std::string pod = printable(device.super_pod_id());
    if (!device.super_device_id().empty())
      pod += (pod.empty() ? "" : ":") + printable(device.super_device_id());
    table.rows.push_back(
        {std::to_string(device.id()),
         renumbered ? std::to_string(device.physical_id()) : std::string(kNothing),
         printable(device.type()), or_nothing(printable(device.model())),
         style.paint(health.tint, health.text), memory_text(device, reading),
         device.has_numa_node() ? std::to_string(device.numa_node()) : std::string(kNothing),
         or_nothing(wide ? printable(device.bus_id()) : std::string()),
         or_nothing(printable(fmt::format("{}", fmt::join(device.addresses(), ",")))),
         or_nothing(pod), use_text(node, device, reading, style)});
  }
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    const bool says = table.rows.empty() || std::ranges::any_of(table.rows, [&](const auto& row) {
                        return row[column] != kNothing;
                      });
    if (says) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  return table;
}

std::string trouble_text(const v1::DeviceReading& reading) {
  if (reading.health_text().empty()) return {};
  return fmt::format("device {}: {}", reading.id(), printable(reading.health_text()));
}

}  // namespace muster::render
