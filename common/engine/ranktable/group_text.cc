#include "common/engine/ranktable/group_text.h"

#include <fmt/format.h>

#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/rank_order.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

Json text_value(std::string text) { return {.kind = Json::Kind::String, .text = std::move(text)}; }

void put_key(Json& object, const char* key, Json value) {
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
}
void put_key(Json& object, const char* key, std::string text) {
  put_key(object, key, text_value(std::move(text)));
}

}  // namespace

Result<std::string> group_list_text(const RankTable& table, std::string_view pods) {
  if (table.version == Version::SuperPods)
    return fail(ErrorCode::InvalidArgument, "a group list has no place for super-pods");
  const auto order = by_rank(table);
  if (!order) return fail(order.error());
  Json instances{.kind = Json::Kind::Array};
  std::size_t devices_all = 0;
  for (const ServerRanks& one : *order) {
    const Server& server = table.servers[one.server];
    Json devices{.kind = Json::Kind::Array};
    for (const std::size_t place : one.devices) {
      const Device& device = server.devices[place];
      if (device.device_id > kGroupDeviceMost)
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("device {} of server '{}': a group list has devices 0 to {} only",
                                device.device_id, shown(server.server_id), kGroupDeviceMost));
      Json entry{.kind = Json::Kind::Object};
      put_key(entry, "device_id", std::to_string(device.device_id));
      if (!device.device_ip.empty()) put_key(entry, "device_ip", device.device_ip);
      devices.items.push_back(std::move(entry));
    }
    devices_all += one.devices.size();
    Json instance{.kind = Json::Kind::Object};
    put_key(instance, "pod_name", fmt::format("{}-{}", pods, instances.items.size()));
    put_key(instance, "server_id", server.server_id);
    put_key(instance, "devices", std::move(devices));
    instances.items.push_back(std::move(instance));
  }
  Json group{.kind = Json::Kind::Object};
  put_key(group, "group_name", std::string("worker"));
  put_key(group, "instance_count", std::to_string(instances.items.size()));
  put_key(group, "device_count", std::to_string(devices_all));
  put_key(group, "instance_list", std::move(instances));
  Json groups{.kind = Json::Kind::Array};
  groups.items.push_back(std::move(group));
  Json whole{.kind = Json::Kind::Object};
  put_key(whole, "status", std::string("completed"));
  put_key(whole, "group_count", std::string("1"));
  put_key(whole, "group_list", std::move(groups));
  return json_text(whole);
}

}  // namespace muster::ranktable
