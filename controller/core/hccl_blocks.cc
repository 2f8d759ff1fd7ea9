#include "controller/core/hccl_blocks.h"

#include <fmt/format.h>

#include <map>
#include <ranges>

#include "common/engine/engine.h"

namespace muster::core {
namespace {

constexpr std::size_t kHostsNamed = 6;

std::string no_block(const std::vector<PlacedNode*>& hosts, const Limits& limits) {
  std::vector<std::string> names;
  for (const PlacedNode* node : hosts | std::views::take(kHostsNamed)) names.push_back(fmt::format("'{}'", node->node.str()));
  if (names.size() == 1)
    return fmt::format("{} has no {} ports of {}-{} in a row free for HCCL; give the controller a wider range", names.front(), engine::kHcclPorts,
                       limits.port_first, limits.port_last);
  return fmt::format("{}{} have no {} ports of {}-{} in a row free for HCCL, the same on every host; give the controller a wider range", fmt::join(names, ", "),
                     hosts.size() > kHostsNamed ? fmt::format(" and {} more", hosts.size() - kHostsNamed) : "", engine::kHcclPorts, limits.port_first,
                     limits.port_last);
}

}  // namespace

std::string give_blocks(HostPorts& ports, const Limits& limits, std::vector<PlacedNode>& nodes, std::uint16_t master_port) {
  std::map<std::string, std::vector<std::uint16_t>> given;  // by address
  std::map<std::size_t, std::vector<PlacedNode*>> turns;    // the first node of every address, the second ...
  std::map<std::string, std::size_t> turn;
  for (PlacedNode& node : nodes) {
    if (node.rank_count > 0) turns[turn[node.address]++].push_back(&node);
  }
  for (auto& [_, hosts] : turns) {
    std::vector<HostPorts::Wanted> wanted;
    for (const PlacedNode* node : hosts) {
      wanted.push_back({.node = node->node,
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
