#include "controller/core/placement/hccl_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "common/engine/model/engine.h"
#include "controller/core/placement/place_why.h"

namespace muster::core {
namespace {

constexpr std::size_t kHostsNamed = 6;

std::string no_block(const std::vector<PlacedNode*>& hosts, const Limits& limits) {
  std::vector<std::string> names;
  for (const PlacedNode* node : hosts | std::views::take(kHostsNamed))
    names.push_back(fmt::format("'{}'", node->node.str()));
  const bool one = names.size() == 1;
  return fmt::format(
      "{}{} {} no {} ports of {}-{} in a row free for HCCL{}, because other attempts hold them{}",
      fmt::join(names, ", "),
      hosts.size() > kHostsNamed ? fmt::format(" and {} more", hosts.size() - kHostsNamed) : "",
      one ? "has" : "have", engine::kHcclPorts, limits.port_first, limits.port_last,
      one ? "" : ", the same on every host", kWhenPortsAreReserved);
}

// How many of the nodes that fit have ports, if no host takes more than `most` nodes.
std::size_t nodes_with(const std::map<std::string, std::size_t>& able, std::size_t most) {
  std::size_t count = 0;
  for (const auto& [_, nodes] : able) count += std::min(nodes, most);
  return count;
}

}  // namespace

std::string range_refuses(const HostPorts& ports, const Placing& placing,
                          const std::map<std::string, std::size_t>& able) {
  const v1::JobSpec& spec = placing.job.spec;
  const Limits& limits = placing.limits;
  const std::size_t needed = spec.launch().per() == v1::LAUNCH_PER_ONCE
                                 ? 1
                                 : std::max<std::size_t>(1, spec.resources().nodes());
  const std::size_t room = ports.nodes_a_host();
  if (nodes_with(able, room) >= needed || nodes_with(able, needed) < needed) return {};
  const auto counts = std::views::iota(room + 1, needed);
  const auto enough = std::ranges::partition_point(
      counts, [&](std::size_t most) { return nodes_with(able, most) < needed; });
  const std::size_t shared = room + 1 + static_cast<std::size_t>(enough - counts.begin());
  const std::uint32_t fixed = spec.network().master_port();
  const bool inside = fixed >= limits.port_first && fixed <= limits.port_last;
  const bool own = fixed == 0 || inside;  // rank 0's port is out of the range
  std::string text = shared == 1
                         ? "a node needs"
                         : fmt::format("{} of these nodes would share a host and need", shared);
  text += fmt::format(
      " {} ports, {} in a row for HCCL{}{}, and the controller's --port-range {}-{} has {}",
      shared * engine::kHcclPorts + (own ? 1 : 0), engine::kHcclPorts, shared == 1 ? "" : " each",
      own ? " and one for rank 0" : "", limits.port_first, limits.port_last,
      limits.port_last - limits.port_first + 1);
  if (inside) text += fmt::format(", with network.master_port {} among them", fixed);
  return text + "; start the controller with a wider --port-range";
}

std::vector<std::uint16_t> blocks_of_first_host(const std::vector<PlacedNode>& nodes) {
  std::vector<std::uint16_t> blocks;
  for (const PlacedNode& node : nodes) {
    if (node.hccl_port != 0 && node.address == nodes.front().address)
      blocks.push_back(node.hccl_port);
  }
  return blocks;
}

std::string give_blocks(HostPorts& ports, const Limits& limits, std::vector<PlacedNode>& nodes,
                        std::uint16_t master_port) {
  std::map<std::string, std::vector<std::uint16_t>> given;  // by address
  // The first node of every address, then the second of every address, and so on.
  std::map<std::size_t, std::vector<PlacedNode*>> turns;
  std::map<std::string, std::size_t> turn;
  for (PlacedNode& node : nodes) {
    if (node.rank_count > 0) turns[turn[node.address]++].push_back(&node);
  }
  for (auto& [_, hosts] : turns) {
    std::vector<HostPorts::Wanted> wanted;
    for (const PlacedNode* node : hosts) {
      wanted.push_back(
          {.node = node->node,
           .address = node->address,
           .master_port = node->address == nodes.front().address ? master_port : std::uint16_t{0},
           .given = given[node->address]});
    }
    const std::uint16_t first = ports.block(wanted);
    if (first == 0) return no_block(hosts, limits);
    for (PlacedNode* node : hosts) {
      node->hccl_port = first;
      given[node->address].push_back(first);
    }
  }
  return {};
}

}  // namespace muster::core
