#include "common/engine/ranktable/rank_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace muster::ranktable {

std::string_view to_string(Version version) {
  switch (version) {
    case Version::Servers: return "1.0";
    case Version::SuperPods: return "1.2";
  }
  return "";
}

std::size_t RankTable::rank_count() const {
  std::size_t count = 0;
  for (const Server& server : servers) count += server.devices.size();
  return count;
}

std::vector<SuperPod> super_pods(const RankTable& table) {
  std::vector<SuperPod> pods;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < table.servers.size(); ++i) {
    const std::string& id = table.servers[i].super_pod_id;
    if (id.empty()) continue;
    const auto [place, added] = places.try_emplace(id, pods.size());
    if (added) pods.push_back({.id = id});
    pods[place->second].servers.push_back(i);
  }
  return pods;
}

void number_ranks(RankTable& table) {
  std::uint32_t next = 0;
  for (Server& server : table.servers) {
    for (Device& device : server.devices) device.rank_id = next++;
  }
}

Result<RankTable> merge(std::span<const RankTable> tables) {
  if (tables.empty()) return fail(ErrorCode::InvalidArgument, "merging rank tables: there is none");
  RankTable merged{.version = tables.front().version};
  std::size_t base = 0;
  for (const RankTable& table : tables) {
    if (table.version != merged.version) {
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format(
              "merging rank tables: one has version {}, another {}; make them all the same version",
              to_string(merged.version), to_string(table.version)));
    }
    const std::size_t count = table.rank_count();
    if (base + count > kRanksMax)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("merging rank tables: more than {} ranks together", kRanksMax));
    for (const Server& server : table.servers) {
      merged.servers.push_back(server);
      for (Device& device : merged.servers.back().devices)
        device.rank_id += static_cast<std::uint32_t>(base);
    }
    base += count;
  }
  return merged;
}

std::vector<RankTable> per_server(const RankTable& table) {
  std::vector<RankTable> parts;
  parts.reserve(table.servers.size());
  for (const Server& server : table.servers) {
    RankTable& part = parts.emplace_back(RankTable{.version = table.version, .servers = {server}});
    std::vector<Device*> devices;
    for (Device& device : part.servers.front().devices) devices.push_back(&device);
    std::ranges::stable_sort(devices, {}, [](const Device* device) { return device->rank_id; });
    for (std::uint32_t rank = 0; Device * device : devices) device->rank_id = rank++;
  }
  return parts;
}

std::string server_file_name(std::span<const std::uint32_t> logic_ids, std::string_view server_id) {
  return fmt::format("hccl_{}p_{}_{}.json", logic_ids.size(), fmt::join(logic_ids, ""), server_id);
}

std::string merged_file_name(const RankTable& table) {
  return fmt::format("hccl_{}s_{}p.json", table.servers.size(), table.rank_count());
}

}  // namespace muster::ranktable
