#include "controller/core/placement/host_ports.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "common/engine/model/engine.h"

namespace muster::core {
namespace {

constexpr std::uint32_t kBlockFirstMin = 1024;  // the lowest that HCCL accepts
// How many attempts of a node that ended recently are remembered.
constexpr std::size_t kRecent = 16;
// The block was used by none of the recent attempts.
constexpr std::size_t kNeverUsed = std::numeric_limits<std::size_t>::max();

bool in_block(std::uint32_t port, std::uint32_t first) {
  return port >= first && port < first + engine::kHcclPorts;
}
bool in_any(std::uint32_t port, const std::vector<std::uint16_t>& blocks) {
  return std::ranges::any_of(blocks, [port](std::uint16_t first) { return in_block(port, first); });
}
// The number of blocks that fit next to each other, up to the range's end.
std::size_t blocks_in(const Limits& limits) {
  const std::uint32_t first = std::max<std::uint32_t>(limits.port_first, kBlockFirstMin),
                      end = limits.port_last + 1U;
  return end > first ? (end - first) / engine::kHcclPorts : 0;
}
bool meets(std::uint32_t block, std::uint32_t other) {
  return in_block(block, other) || in_block(other, block);
}
bool meets_any(std::uint32_t block, const std::vector<std::uint16_t>& blocks) {
  return std::ranges::any_of(blocks, [block](std::uint16_t first) { return meets(block, first); });
}

}  // namespace

bool HostPorts::is_free(const std::string& address, std::uint16_t port) const {
  return !ledger_.indexes.ports_reserved.contains({address, port}) &&
         !taken_.ports.contains({address, port});
}

std::uint16_t HostPorts::master(const NodeName& node, const std::string& address,
                                const std::vector<std::uint16_t>& excluded) {
  const Blocks& blocks = blocks_of(node);
  const std::vector<std::string>& addresses = addresses_of(node, address);
  const auto free_on_all = [&](std::uint16_t port) {
    return std::ranges::all_of(addresses,
                               [&](const std::string& one) { return is_free(one, port); });
  };
  const auto usable = [&](std::uint16_t port) {
    return free_on_all(port) && !in_any(port, blocks.reserved) && !in_any(port, excluded);
  };
  if (const auto fixed = static_cast<std::uint16_t>(job_.spec.network().master_port()); fixed != 0)
    return usable(fixed) ? fixed : 0;
  const std::uint32_t count = limits_.port_last - limits_.port_first + 1U;
  const auto cursor = ledger_.port_cursor.find(address);
  const bool inside = cursor != ledger_.port_cursor.end() && cursor->second >= limits_.port_first &&
                      cursor->second <= limits_.port_last;
  const std::uint32_t start = inside ? cursor->second - limits_.port_first + 1U : 0;
  const std::uint16_t last = job_.current() == nullptr ? 0 : job_.current()->master_port;
  for (std::uint32_t offset = 0; offset < count; ++offset) {
    const auto port = static_cast<std::uint16_t>(limits_.port_first + (start + offset) % count);
    if (port != last && usable(port)) return port;
  }
  // There is no other port.
  return last >= limits_.port_first && last <= limits_.port_last && usable(last) ? last
                                                                                 : std::uint16_t{0};
}

bool HostPorts::needs_blocks(std::string_view type) const {
  return engine::is_ascend(type) && engine::wants_hccl_port(job_.spec) && blocks_in(limits_) > 0;
}

std::size_t HostPorts::nodes_a_host() const {
  const std::size_t blocks = blocks_in(limits_);
  const std::uint32_t end = limits_.port_last + 1U,
                      first = end - static_cast<std::uint32_t>(blocks) * engine::kHcclPorts;
  const std::uint32_t fixed = job_.spec.network().master_port();
  const bool one_less = fixed == 0 ? first <= limits_.port_first : fixed >= first && fixed < end;
  return one_less && blocks > 0 ? blocks - 1 : blocks;
}

std::uint16_t HostPorts::block(const std::vector<Wanted>& hosts) {
  const std::uint32_t least = std::max<std::uint32_t>(limits_.port_first, kBlockFirstMin);
  std::uint16_t oldest = 0;
  std::size_t age = 0;
  // From the range's end: single ports reach that part of the range last.
  for (std::uint32_t end = limits_.port_last + 1U; end >= least + engine::kHcclPorts;
       end -= engine::kHcclPorts) {
    const auto first = static_cast<std::uint16_t>(end - engine::kHcclPorts);
    const auto is_free = [&](const Wanted& host) {
      return !meets_any(first, blocks_of(host.node).reserved) && !meets_any(first, host.given) &&
             !in_block(host.master_port, first) &&
             std::ranges::none_of(
                 addresses_of(host.node, host.address),
                 [&](const std::string& one) { return any_port_reserved(one, first); });
    };
    if (!std::ranges::all_of(hosts, is_free)) continue;
    const std::size_t its = age_of(first, hosts);
    if (its == kNeverUsed) return first;
    if (oldest == 0 || its > age) oldest = first, age = its;
  }
  return oldest;
}

std::size_t HostPorts::age_of(std::uint16_t first, const std::vector<Wanted>& hosts) {
  std::size_t age = kNeverUsed;
  for (const Wanted& host : hosts) {
    for (const Recent& recent : blocks_of(host.node).recent) {
      if (meets(first, recent.first)) age = std::min(age, recent.age);
    }
  }
  return age;
}

bool HostPorts::any_port_reserved(const std::string& address, std::uint16_t first) const {
  const auto reserved = [&](const auto& ports, const auto& port_of) {
    const auto at = ports.lower_bound({address, first});
    return at != ports.end() && port_of(*at).first == address &&
           in_block(port_of(*at).second, first);
  };
  return reserved(ledger_.indexes.ports_reserved, [](const auto& entry) { return entry.first; }) ||
         reserved(taken_.ports, [](const auto& entry) { return entry; });
}

const std::vector<std::string>& HostPorts::addresses_of(const NodeName& node,
                                                        const std::string& address) {
  const auto [entry, fresh] = addresses_.try_emplace({node, address});
  if (!fresh) return entry->second;
  entry->second.push_back(address);
  const auto record = ledger_.nodes.find(node);
  if (record == ledger_.nodes.end()) return entry->second;
  const v1::Inventory& inventory = record->second.inventory;
  if (inventory.address() != address) entry->second.push_back(inventory.address());
  for (const v1::NetworkInterface& interface : inventory.interfaces()) {
    for (const std::string& one : interface.addresses()) {
      if (one != address && one != inventory.address()) entry->second.push_back(one);
    }
  }
  return entry->second;
}

std::uint16_t HostPorts::block_of(const AttemptKey& key, const NodeName& node) const {
  const auto job = ledger_.jobs.find(key.first);
  const AttemptRecord* attempt =
      job == ledger_.jobs.end() ? nullptr : job->second.attempt(key.second);
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(node);
  return part == nullptr ? std::uint16_t{0} : part->placed.hccl_port;
}

void HostPorts::collect(const NodeName& node, Blocks& into) const {
  if (const auto parts = ledger_.indexes.node_parts.find(node);
      parts != ledger_.indexes.node_parts.end()) {
    for (const AttemptKey& key : parts->second.unswept) {
      if (const std::uint16_t first = block_of(key, node); first != 0)
        into.reserved.push_back(first);
    }
    std::size_t age = 0;
    const auto recent = [&](const AttemptKey& key) {
      if (const std::uint16_t first = block_of(key, node); first != 0)
        into.recent.push_back({.first = first, .age = age});
      ++age;
    };
    std::ranges::for_each(parts->second.open | std::views::reverse, recent);
    std::ranges::for_each(
        parts->second.closed | std::views::values | std::views::reverse | std::views::take(kRecent),
        recent);
  }
  if (const auto taken = taken_.blocks.find(node); taken != taken_.blocks.end())
    into.reserved.insert(into.reserved.end(), taken->second.begin(), taken->second.end());
}

const HostPorts::Blocks& HostPorts::blocks_of(const NodeName& node) {
  const auto [entry, fresh] = blocks_.try_emplace(node);
  if (!fresh) return entry->second;
  if (hosts_.empty()) {
    for (const auto& [name, record] : ledger_.nodes)
      hosts_[record.inventory.address()].push_back(&record);
  }
  const auto record = ledger_.nodes.find(node);
  if (record == ledger_.nodes.end()) return entry->second;
  for (const NodeRecord* one : hosts_.at(record->second.inventory.address()))
    collect(one->name, entry->second);
  return entry->second;
}

}  // namespace muster::core
