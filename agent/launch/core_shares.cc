#include "agent/launch/core_shares.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kListBytesMost = 64 << 10;

process::CpuList allowed_of(const std::filesystem::path& file, const process::CpuList& allowed) {
  const auto text = io::read_file(file, kListBytesMost);
  const auto listed = text ? process::parse_cpu_list(*text) : std::nullopt;
  process::CpuList both;
  if (listed) std::ranges::set_intersection(*listed, allowed, std::back_inserter(both));
  return both;
}

// The NUMA nodes of a rank's devices; empty if one of them is unknown.
std::set<std::uint32_t> nodes_of(const v1::RankProcess& rank, const NumaNodes& devices) {
  std::set<std::uint32_t> nodes;
  for (const std::uint32_t device : rank.devices()) {
    const auto known = devices.find(device);
    if (known == devices.end()) return {};
    nodes.insert(known->second);
  }
  return nodes;
}

}  // namespace

NumaCores read_cores(const std::filesystem::path& sys, const NumaNodes& devices,
                     const process::CpuList& allowed) {
  NumaCores found;
  for (const auto& [device, node] : devices) {
    if (found.contains(node)) continue;
    std::vector<process::CpuList>& cores = found[node];
    std::set<unsigned> seen;
    for (const unsigned cpu : allowed_of(
             sys / "devices/system/node" / ("node" + std::to_string(node)) / "cpulist", allowed)) {
      if (seen.contains(cpu)) continue;
      process::CpuList threads =
          allowed_of(sys / "devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                         "topology/thread_siblings_list",
                     allowed);
      if (!std::ranges::binary_search(threads, cpu)) threads = {cpu};
      seen.insert(threads.begin(), threads.end());
      cores.push_back(std::move(threads));
    }
  }
  return found;
}

std::vector<process::CpuList> share_cores(const v1::NodeLaunch& order, const NumaNodes& devices,
                                          const NumaCores& cores) {
  // indexes in order.ranks, by NUMA node
  std::map<std::uint32_t, std::vector<std::size_t>> sharers;
  for (int at = 0; at < order.ranks_size(); ++at)
    for (const std::uint32_t node : nodes_of(order.ranks(at), devices))
      sharers[node].push_back(static_cast<std::size_t>(at));
  std::vector<process::CpuList> shares(static_cast<std::size_t>(order.ranks_size()));
  for (const auto& [node, ranks] : sharers) {
    const auto known = cores.find(node);
    if (known == cores.end()) continue;
    const std::vector<process::CpuList>& all = known->second;
    const bool divided = all.size() >= ranks.size();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::size_t first = divided ? all.size() * i / ranks.size() : 0,
                        end = divided ? all.size() * (i + 1) / ranks.size() : all.size();
      for (std::size_t core = first; core < end; ++core)
        shares[ranks[i]].insert(shares[ranks[i]].end(), all[core].begin(), all[core].end());
    }
  }
  for (process::CpuList& share : shares) {
    std::ranges::sort(share);
    share.erase(std::ranges::unique(share).begin(), share.end());
  }
  return shares;
}

void bind_ranks(rundir::v1::Launch& launch, const v1::NodeLaunch& order, const NumaNodes& devices,
                const std::filesystem::path& sys) {
  NumaNodes used;
  for (const v1::RankProcess& rank : order.ranks())
    for (const std::uint32_t device : rank.devices())
      if (const auto known = devices.find(device); known != devices.end()) used.insert(*known);
  const auto allowed = process::allowed_cpus();
  if (used.empty() || !allowed) return;
  const auto shares = share_cores(order, devices, read_cores(sys, used, *allowed));
  for (int at = 0; at < launch.ranks_size() && at < order.ranks_size(); ++at)
    launch.mutable_ranks(at)->set_cpus(
        process::cpu_list_text(shares[static_cast<std::size_t>(at)]));
}

}  // namespace muster::agent
