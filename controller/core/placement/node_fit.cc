#include "controller/core/placement/node_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/engine/ascend/table_plan.h"
#include "common/engine/model/secret.h"
#include "common/engine/ranktable/rank_table.h"
#include "common/engine/ranktable/words.h"
#include "common/store/rclone.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/placement/placing.h"

namespace muster::core {
namespace {

constexpr int kInterfacesNamed = 8;
constexpr std::size_t kInterfaceNameMax = 15;  // the kernel's limit, without the terminating byte
constexpr std::size_t kNumbersBytes = 64;      // for a list of devices

bool is_any(std::string_view asked) { return asked.empty() || asked == "auto"; }

bool wanted(const v1::ResourceSpec& resources, std::uint32_t device) {
  return resources.device_ids().empty() ||
         std::ranges::find(resources.device_ids(), device) != resources.device_ids().end();
}

// An operator may have written the same address differently: "fd00:0::1".
bool is_same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto one = ranktable::parse_address(a), other = ranktable::parse_address(b);
  return one && other && *one == *other;
}

const v1::NetworkInterface* interface_of(const NodeRecord& node, std::string_view name) {
  const auto& all = node.inventory.interfaces();
  const auto found = std::ranges::find(all, name, &v1::NetworkInterface::name);
  return found == all.end() ? nullptr : &*found;
}

// The interface that has the address, in any notation. Empty: the node reports no such interface.
std::string interface_with(const NodeRecord& node, const std::string& address) {
  for (const v1::NetworkInterface& one : node.inventory.interfaces()) {
    if (std::ranges::any_of(one.addresses(),
                            [&](const std::string& its) { return is_same(its, address); }))
      return one.name();
  }
  return {};
}

std::string lacks_interface(const NodeRecord& node, const v1::JobSpec& spec) {
  const std::string& name = spec.network().interface();
  if (is_any(name)) return {};
  const v1::NetworkInterface* found = interface_of(node, name);
  if (found != nullptr && !found->addresses().empty()) return {};
  if (found != nullptr) return fmt::format("has no address on interface '{}'", name);
  const auto& all = node.inventory.interfaces();
  if (all.empty()) return fmt::format("reports no interface '{}', and no other", name);
  std::string there;
  for (int i = 0; i < std::min(all.size(), kInterfacesNamed); ++i)
    there += fmt::format("{}{}", i == 0 ? "" : ", ", all[i].name().substr(0, kInterfaceNameMax));
  if (all.size() > kInterfacesNamed)
    there += fmt::format(" and {} more", all.size() - kInterfacesNamed);
  return fmt::format("has no interface '{}' ({})", name, there);
}

std::string lacks_label(const NodeRecord& node, const v1::ResourceSpec& resources) {
  for (const auto& [key, value] : resources.select()) {
    const std::string* label = label_of(node, key);
    if (label == nullptr) return fmt::format("has no label '{}'", key);
    if (*label != value) return fmt::format("has label {}={}", key, *label);
  }
  return {};
}

std::string devices_there(const NodeRecord& node) {
  std::map<std::string, std::size_t> kinds;
  for (const v1::Device& device : node.inventory.devices()) ++kinds[device.type()];
  std::string there;
  for (const auto& [kind, count] : kinds)
    there += fmt::format("{}{} {}", there.empty() ? "" : " and ", count, kind);
  return there.empty() ? "has no devices" : fmt::format("has {}", there);
}

// Clears the list if all texts are empty: a list that is parallel to the devices is known, or
// empty.
void drop_if_unknown(std::vector<std::string>& texts) {
  if (std::ranges::all_of(texts, [](const std::string& text) { return text.empty(); }))
    texts.clear();
}

// The text that all devices share. Empty if they differ.
std::string common_text(const std::vector<const v1::Device*>& devices,
                        const std::string& (v1::Device::*text)() const) {
  if (devices.empty()) return {};
  const std::string& first = (devices.front()->*text)();
  return std::ranges::all_of(devices,
                             [&](const v1::Device* device) { return (device->*text)() == first; })
             ? first
             : std::string();
}

void pin_devices(PlacedNode& placed, const NodeRecord& node) {
  std::map<std::uint32_t, const v1::Device*> known;
  for (const v1::Device& device : node.inventory.devices()) {
    if (device.type() == placed.device_type) known.emplace(device.id(), &device);
  }
  std::vector<const v1::Device*> devices;
  bool renumbered = false;
  for (const std::uint32_t id : placed.devices) {
    const v1::Device& device = *known.at(id);
    devices.push_back(&device);
    const std::uint32_t physical = device.has_physical_id() ? device.physical_id() : id;
    renumbered = renumbered || physical != id;
    placed.physical_ids.push_back(physical);
    placed.device_ips.push_back(device.addresses().empty() ? "" : device.addresses(0));
    placed.super_device_ids.push_back(device.super_device_id());
  }
  if (!renumbered) placed.physical_ids.clear();
  drop_if_unknown(placed.device_ips);
  drop_if_unknown(placed.super_device_ids);
  placed.device_model = common_text(devices, &v1::Device::model);
  placed.super_pod_id = common_text(devices, &v1::Device::super_pod_id);
}

// An agent of a release before secrets would start the processes without them. One without rclone
// fetches nothing.
std::string lacks_release(const NodeRecord& node, const v1::JobSpec& spec) {
  if (!node.inventory.knows_secrets() && !engine::secrets_of(spec).empty())
    return fmt::format("has an agent of release {}, which knows no secrets", node.version);
  if (!node.inventory.uploads() && uploads_outputs(spec))
    return fmt::format("has an agent of release {}, which uploads no outputs", node.version);
  if (!node.inventory.uploads_logs() && uploads_logs(spec))
    return fmt::format("has an agent of release {}, which uploads no logs", node.version);
  if ((!has_staged_input(spec) && !uploads_outputs(spec) && !uploads_logs(spec)) ||
      store::is_new_enough(node.inventory.rclone()))
    return {};
  const std::string_view who = has_staged_input(spec)  ? "inputs in stores"
                               : uploads_outputs(spec) ? "outputs.to"
                                                       : "outputs.logs_to";
  return node.inventory.rclone().empty()
             ? fmt::format("has no rclone, which {} need{} (rclone {} or later)", who,
                           has_staged_input(spec) ? "" : "s", store::kRcloneLeast)
             : fmt::format("has rclone {}, and {} need{} {} or later",
                           ranktable::shown(node.inventory.rclone()), who,
                           has_staged_input(spec) ? "" : "s", store::kRcloneLeast);
}

}  // namespace

std::set<std::uint32_t> ambiguous_ids(const v1::Inventory& inventory) {
  std::set<std::uint32_t> ambiguous;
  const auto& devices = inventory.devices();
  // Agents send the devices in order, each once. This runs at every check of a node, so it is fast
  // for that case.
  if (std::ranges::adjacent_find(devices, std::ranges::greater_equal{}, &v1::Device::id) ==
      devices.end())
    return ambiguous;
  std::set<std::uint32_t> seen;
  for (const v1::Device& device : devices) {
    if (!seen.insert(device.id()).second) ambiguous.insert(device.id());
  }
  return ambiguous;
}

void leave_out_ambiguous(v1::Inventory& inventory) {
  const std::set<std::uint32_t> ambiguous = ambiguous_ids(inventory);
  if (ambiguous.empty()) return;
  auto& devices = *inventory.mutable_devices();
  const int before = devices.size();
  const auto rest = std::remove_if(devices.begin(), devices.end(), [&](const v1::Device& device) {
    return ambiguous.contains(device.id());
  });
  devices.erase(rest, devices.end());
  std::string numbers;
  for (const std::uint32_t id : ambiguous) {
    if (numbers.size() > kNumbersBytes) {
      numbers += " and others";
      break;
    }
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", id);
  }
  inventory.add_findings(
      fmt::format("{} devices are left out, for they share the number{} {}: each device has a "
                  "number of its own",
                  before - devices.size(), ambiguous.size() == 1 ? "" : "s", numbers));
}

Fit capacity(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type) {
  const v1::ResourceSpec& resources = spec.resources();
  if (node.dead) return {.why = "is declared dead"};
  if (std::string why = lacks_label(node, resources); !why.empty()) return {.why = std::move(why)};
  if (std::string why = lacks_release(node, spec); !why.empty()) return {.why = std::move(why)};
  const Ask ask = ask_of(spec);
  Fit fit;
  std::vector<std::uint32_t> addressed;
  const std::set<std::uint32_t> ambiguous = ambiguous_ids(node.inventory);
  for (const v1::Device& device : node.inventory.devices()) {
    if (device.type() != type || !wanted(resources, device.id()) || ambiguous.contains(device.id()))
      continue;
    fit.devices.push_back(device.id());
    if (!device.addresses().empty()) addressed.push_back(device.id());
  }
  std::ranges::sort(fit.devices);
  std::ranges::sort(addressed);
  if (fit.devices.size() < ask.count) {
    const auto& devices = node.inventory.devices();
    const bool of_type = std::ranges::find(devices, type, &v1::Device::type) != devices.end();
    if (of_type && !resources.device_ids().empty())
      return {.why = fmt::format("has {} of these devices", fit.devices.size())};
    return {.why = devices_there(node)};
  }
  if (std::string why = lacks_interface(node, spec); !why.empty()) return {.why = std::move(why)};
  // Within one super-pod no addresses are needed.
  if (engine::makes_rank_table(spec) && resources.nodes() > 1 && pod_of(node, type).empty()) {
    if (addressed.size() < ask.count)
      return {.why = fmt::format("has {} {}, {} of them with an address", fit.devices.size(), type,
                                 addressed.size()),
              .lacks_addresses = true};
    fit.devices = std::move(addressed);
  }
  const NodeCards cards(node, spec, type);
  if (!cards.choose(ask, fit.devices).empty()) return fit;
  if (std::string wrong = cards.refusal(ask, fit.devices); !wrong.empty())
    return {.why = fmt::format("cannot give them: {}", wrong)};
  return {.why = fmt::format("has {} {}", cards.tally(fit.devices), type)};
}

std::string pod_of(const NodeRecord& node, std::string_view type) {
  std::vector<const v1::Device*> devices;
  for (const v1::Device& device : node.inventory.devices()) {
    if (device.type() == type) devices.push_back(&device);
  }
  return common_text(devices, &v1::Device::super_pod_id);
}

std::size_t count_addressed(const NodeRecord& node, std::string_view type,
                            const std::vector<std::uint32_t>& devices) {
  return static_cast<std::size_t>(
      std::ranges::count_if(node.inventory.devices(), [&](const v1::Device& device) {
        return device.type() == type && !device.addresses().empty() &&
               std::ranges::find(devices, device.id()) != devices.end();
      }));
}

std::string lacks_apart_from_devices(const NodeRecord& node, const v1::JobSpec& spec) {
  if (node.dead) return "is declared dead";
  if (std::string why = lacks_label(node, spec.resources()); !why.empty()) return why;
  if (std::string why = lacks_release(node, spec); !why.empty()) return why;
  return lacks_interface(node, spec);
}

std::vector<std::string> types_to_try(std::span<const NodeRecord* const> nodes,
                                      const v1::JobSpec& spec) {
  const std::string& asked = spec.resources().type();
  const bool any = is_any(asked);
  std::set<std::string> present;
  for (const NodeRecord* node : nodes) {
    for (const v1::Device& device : node->inventory.devices()) {
      if (any || engine::is_device_type(asked, device.type())) present.insert(device.type());
    }
  }
  if (!any) {
    if (present.empty()) return {asked};
    return {present.begin(), present.end()};
  }
  // Accelerators first: a node full of them lists its processors, too.
  const bool cpu = present.erase("cpu") > 0;
  std::vector<std::string> types(present.begin(), present.end());
  if (cpu || types.empty()) types.emplace_back("cpu");
  return types;
}

std::string training_address(const NodeRecord& node, const v1::JobSpec& spec) {
  if (is_any(spec.network().interface())) return node.inventory.address();
  const v1::NetworkInterface* found = interface_of(node, spec.network().interface());
  return found == nullptr || found->addresses().empty() ? std::string() : found->addresses(0);
}

PlacedNode pinned(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type,
                  std::vector<std::uint32_t> devices) {
  PlacedNode placed{.node = node.name,
                    .boot_id = node.boot_id,
                    .instance = node.instance,
                    .address = training_address(node, spec),
                    .devices = std::move(devices),
                    .device_type = std::string(type)};
  placed.interface = is_any(spec.network().interface()) ? interface_with(node, placed.address)
                                                        : spec.network().interface();
  pin_devices(placed, node);
  return placed;
}

void number_ranks(std::vector<PlacedNode>& nodes, const v1::JobSpec& spec) {
  std::uint32_t next = 0;
  for (PlacedNode& node : nodes) {
    node.first_rank = RankNo(next);
    node.rank_count = engine::ranks_on_node(spec, static_cast<std::size_t>(&node - nodes.data()),
                                            node.devices.size());
    next += node.rank_count;
  }
}

void name_servers(std::vector<PlacedNode>& nodes) {
  std::map<std::string, std::size_t> uses;
  for (const PlacedNode& node : nodes) ++uses[node.address];
  for (PlacedNode& node : nodes) {
    if (uses.at(node.address) > 1 || node.address.size() > ranktable::kServerIdBytesMax)
      node.server_id = node.node.str();
  }
}

}  // namespace muster::core
