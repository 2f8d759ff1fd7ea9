#include "agent/probe/fixed_inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/probe/text.h"
#include "common/engine/ranktable/words.h"

namespace muster::agent::probe {
namespace {

constexpr std::size_t kProblemsMax = 20;
constexpr std::uint32_t kNumberMax = 1023;
constexpr std::string_view kTypes = "ascend910, ascend910b, ascend910_93, ascend, nvidia, cpu";

// Returns "" if the value is valid, else the problem.
using Set = std::string (*)(Device&, std::string_view);

std::string set_number(std::uint32_t& into, std::string_view value) {
  const auto number = ranktable::parse_number(value, kNumberMax);
  if (number) into = *number;
  return number ? "" : fmt::format("a number from 0 to {}", kNumberMax);
}

std::string set_decimal(std::optional<std::string>& into, std::string_view value) {
  const auto number = ranktable::parse_number(value);
  if (number) into = std::to_string(*number);
  return number ? "" : "a number from 0 to 4294967294";
}

const std::map<std::string_view, Set>& keys() {
  static const std::map<std::string_view, Set> kKeys = {
      {"id", [](Device& device, std::string_view value) { return set_number(device.id, value); }},
      {"physical", [](Device& device,
                      std::string_view value) { return set_number(device.physical_id, value); }},
      {"type",
       [](Device& device, std::string_view value) {
         const auto type = device_type(value);
         if (type) device.type = *type;
         return type ? std::string() : fmt::format("one of {}", kTypes);
       }},
      {"name",
       [](Device& device, std::string_view value) {
         device.name = clean(value, 60);
         return std::string();
       }},
      {"bus",
       [](Device& device, std::string_view value) {
         const auto bus = pci_address(value);
         device.bus_id = bus.value_or("");
         return std::string(bus ? "" : "a PCI address as 0000:c1:00.0");
       }},
      {"memory_mib",
       [](Device& device, std::string_view value) {
         const auto number = parse_u64(value);
         const bool good = number && *number > 0 && *number <= (1ULL << 32U);
         if (good) device.memory_total_mib = number;
         return std::string(good ? "" : "a number of MiB");
       }},
      {"address",
       [](Device& device, std::string_view value) {
         const auto address = ranktable::parse_address(value);
         const bool good = address && !ranktable::is_unspecified(*address);
         if (good) device.addresses = {std::string(value)};
         return std::string(good ? "" : "an IPv4 or IPv6 address");
       }},
      {"numa",
       [](Device& device, std::string_view value) {
         std::uint32_t node = 0;
         std::string wrong = set_number(node, value);
         if (wrong.empty()) device.numa_node = static_cast<int>(node);
         return wrong;
       }},
      {"super_device",
       [](Device& device, std::string_view value) {
         return set_decimal(device.super_device_id, value);
       }},
      {"super_pod", [](Device& device,
                       std::string_view value) { return set_decimal(device.super_pod_id, value); }},
      {"server",
       [](Device& device, std::string_view value) {
         std::uint32_t index = 0;
         std::string wrong = set_number(index, value);
         if (wrong.empty()) device.server_index = index;
         return wrong;
       }},
  };
  return kKeys;
}

}  // namespace

Result<std::vector<Device>> parse_fixed_inventory(std::string_view text) {
  std::vector<Device> devices;
  std::vector<std::string> problems;
  std::map<std::uint32_t, std::size_t> line_of;
  std::size_t number = 0;
  const auto problem = [&](std::string what) {
    if (problems.size() < kProblemsMax)
      problems.push_back(fmt::format("line {}: {}", number, what));
  };
  std::string_view line;
  while (next_line(text, line) && problems.size() < kProblemsMax) {
    ++number;
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    if (devices.size() >= kDevicesMax) {
      problem(fmt::format("a node has at most {} devices", kDevicesMax));
      break;
    }
    Device device;
    std::set<std::string_view> seen;
    bool numbered = false;
    for (const std::string_view word : words) {
      const std::size_t equals = word.find('=');
      const std::string_view key = word.substr(0, equals), value = equals == std::string_view::npos
                                                                       ? std::string_view{}
                                                                       : word.substr(equals + 1);
      const auto known = keys().find(key);
      if (equals == std::string_view::npos || known == keys().end()) {
        std::vector<std::string_view> names;
        for (const auto& [name, set] : keys()) names.push_back(name);
        problem(fmt::format("'{}' is no KEY=VALUE of a device; keys: {}", clean(word, 40),
                            fmt::join(names, " ")));
      } else if (!seen.insert(key).second) {
        problem(fmt::format("'{}' is given twice", key));
      } else if (const std::string wanted = known->second(device, value); !wanted.empty()) {
        problem(fmt::format("{}='{}' is not {}", key, clean(value, 40), wanted));
      } else {
        numbered = numbered || key == "id";
      }
    }
    for (const std::string_view key : {"id", "type"}) {
      if (!seen.contains(key)) problem(fmt::format("'{}=' is missing", key));
    }
    if (!seen.contains("physical")) device.physical_id = device.id;
    device.card = device.physical_id;
    if (numbered) {
      const auto [place, added] = line_of.emplace(device.id, number);
      if (!added) problem(fmt::format("device {} is on line {} already", device.id, place->second));
    }
    devices.push_back(std::move(device));
  }
  if (!problems.empty()) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the list of devices: {}", fmt::join(problems, "; ")));
  }
  std::ranges::sort(devices, {}, &Device::id);
  return devices;
}

}  // namespace muster::agent::probe
