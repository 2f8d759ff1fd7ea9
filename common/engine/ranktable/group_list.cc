#include "common/engine/ranktable/group_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "common/engine/ranktable/fields.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

class Reader {
 public:
  Reader(const Json& document, Findings& found) : document_(document), found_(found) {}

  GroupList read() {
    Fields top(document_, "", found_);
    if (!top.has("group_list") && top.has("server_list")) {
      top.problem(
          "version",
          "is missing: HCCL then takes the table for a group list; add \"version\": \"1.0\"");
      return {};
    }
    list_.lab = top.has("deploy_mode");
    if (list_.lab) {
      if (const auto* location = top.text("para_plane_nic_location", true);
          location != nullptr && *location != "device") {
        top.problem("para_plane_nic_location",
                    fmt::format("'{}': only 'device' is read", shown(*location)));
      }
    }
    const auto count = top.number("group_count", true);
    const Json* groups = top.objects("group_list");
    if (groups == nullptr) return std::move(list_);
    if (count && *count != groups->items.size())
      top.problem("group_count",
                  fmt::format("'{}', but group_list has {}", *count, groups->items.size()));
    for (std::size_t g = 0; g < groups->items.size(); ++g)
      list_.groups.push_back(group(groups->items[g], fmt::format("group_list[{}]", g)));
    return std::move(list_);
  }

 private:
  Group group(const Json& object, const std::string& where) {
    Fields fields(object, where, found_);
    Group group;
    if (const auto* name = fields.text("group_name", true)) group.name = *name;
    const std::string_view devices_key = list_.lab ? "device_num" : "device_count";
    const auto instances = fields.number("instance_count", true);
    const auto devices = fields.number(devices_key, true);
    group.device_count = devices.value_or(0);
    if (devices && *devices == 0)
      fields.problem(devices_key, "'0': a group without devices is refused");
    const Json* items = fields.objects("instance_list");
    if (items == nullptr) return group;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < items->items.size(); ++i) {
      group.instances.push_back(
          instance(items->items[i], fmt::format("{}.instance_list[{}]", where, i)));
      seen += group.instances.back().devices.size();
    }
    if (instances && *instances != group.instances.size())
      fields.problem("instance_count", fmt::format("'{}', but instance_list has {}", *instances,
                                                   group.instances.size()));
    if (devices && *devices != 0 && *devices != seen)
      fields.problem(devices_key,
                     fmt::format("'{}', but the instances have {} devices", *devices, seen));
    const auto servers = list_.lab ? fields.number("server_num", true) : std::nullopt;
    if (servers && *servers == 0)
      fields.problem("server_num", "'0': a group without servers is refused");
    if (servers && *servers != 0 && (seen % *servers != 0 || !one_of(seen / *servers))) {
      fields.problem("server_num",
                     fmt::format("'{}' servers for {} devices; every server has 1, 2, 4, 8 or 16",
                                 *servers, seen));
    }
    return group;
  }

  static bool one_of(std::size_t each) {
    return each == 1 || each == 2 || each == 4 || each == 8 || each == 16;
  }

  Instance instance(const Json& object, const std::string& where) {
    Fields fields(object, where, found_);
    Instance out;
    if (const auto* id = fields.text("server_id", true)) out.server_id = *id;
    if (list_.lab) {
      out.rank_id = fields.number("rank_id", true);
    } else if (const auto* name = fields.text("pod_name", true)) {
      out.pod_name = *name;
      const std::size_t dash = name->rfind('-');
      out.pod_index =
          parse_number(std::string_view(*name).substr(dash == std::string::npos ? 0 : dash + 1));
      if (const auto [first, added] = pods_.try_emplace(*name, where); !added)
        fields.problem("pod_name", fmt::format("'{}' is there twice, first at {}", shown(*name),
                                               first->second));
    }
    const Json* devices = fields.objects("devices");
    if (devices == nullptr) return out;
    if (list_.lab && devices->items.size() > 1)
      fields.problem(
          "devices",
          fmt::format("has {} devices for one rank_id; in the lab form an instance has one",
                      devices->items.size()));
    for (std::size_t d = 0; d < devices->items.size(); ++d) {
      Fields device(devices->items[d], fmt::format("{}.devices[{}]", where, d), found_);
      Device& made = out.devices.emplace_back();
      made.device_id = device.number("device_id", true).value_or(kUnknown);
      if (made.device_id != kUnknown && made.device_id > 7)
        device.problem(
            "device_id",
            fmt::format("'{}': in this form devices are 0 to 7; version 1.0 goes further",
                        made.device_id));
      if (const auto* ip = device.text("device_ip", false)) made.device_ip = *ip;
    }
    return out;
  }

  const Json& document_;
  Findings& found_;
  GroupList list_;
  std::unordered_map<std::string, std::string> pods_;
};

// Collects devices into servers, in the order in which the servers first occur.
class Folded {
 public:
  void add(const std::string& server_id, Device device, std::uint32_t rank) {
    const auto [place, added] = places_.try_emplace(server_id, table_.servers.size());
    if (added) table_.servers.push_back({.server_id = server_id});
    device.rank_id = rank;
    table_.servers[place->second].devices.push_back(std::move(device));
  }
  RankTable take() { return std::move(table_); }

 private:
  RankTable table_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::vector<const Instance*> instances_of(const Group& group) {
  std::vector<const Instance*> out;
  for (const Instance& instance : group.instances) out.push_back(&instance);
  return out;
}

RankTable by_rank_id(const GroupList& list) {
  std::vector<const Instance*> all;
  for (const Group& group : list.groups) {
    for (const Instance& instance : group.instances) all.push_back(&instance);
  }
  std::ranges::stable_sort(
      all, {}, [](const Instance* instance) { return instance->rank_id.value_or(kUnknown); });
  Folded folded;
  for (const Instance* instance : all) {
    for (const Device& device : instance->devices)
      folded.add(instance->server_id, device, instance->rank_id.value_or(kUnknown));
  }
  return folded.take();
}

}  // namespace

GroupList read_group_list(const Json& document, Findings& found) {
  return Reader(document, found).read();
}

RankTable as_hccl_reads(const GroupList& list) {
  if (list.lab) return by_rank_id(list);
  std::map<std::string, std::vector<Device>> servers;
  for (const Group& group : list.groups) {
    for (const Instance& instance : group.instances) {
      auto& devices = servers[instance.server_id];
      devices.insert(devices.end(), instance.devices.begin(), instance.devices.end());
    }
  }
  RankTable table;
  for (auto& [id, devices] : servers) {
    std::ranges::stable_sort(devices, {}, &Device::device_id);
    table.servers.push_back({.server_id = id, .devices = std::move(devices)});
  }
  number_ranks(table);
  return table;
}

Result<RankTable> as_launcher_reads(const GroupList& list) {
  if (list.lab) return by_rank_id(list);
  Folded folded;
  std::uint32_t rank = 0;
  for (std::size_t g = 0; g < list.groups.size(); ++g) {
    auto instances = instances_of(list.groups[g]);
    if (g == 0) {
      for (const Instance* instance : instances) {
        if (!instance->pod_index) {
          return fail(ErrorCode::InvalidArgument,
                      fmt::format("pod_name '{}' does not end in a number behind a '-': the "
                                  "launcher orders pods by it",
                                  shown(instance->pod_name)));
        }
      }
      std::ranges::stable_sort(instances, {},
                               [](const Instance* instance) { return *instance->pod_index; });
    }
    for (const Instance* instance : instances) {
      for (const Device& device : instance->devices)
        folded.add(instance->server_id, device, rank++);
    }
  }
  return folded.take();
}

}  // namespace muster::ranktable
