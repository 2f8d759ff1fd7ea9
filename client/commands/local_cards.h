// Stand-in devices of a private cluster: a written list for its agents
// (agent/probe/fixed_inventory.h), so that specs for Ascend or NVIDIA nodes, rank tables and all,
// can be tried on a machine that has none of them. No program finds a card there; what is made is
// what a scheduler and a launcher need to know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::client {

inline constexpr std::uint32_t kCardsMost = 16;  // of a node: what HCCL counts

// "ascend910", "ascend910b", "ascend910_93", "nvidia".
bool is_card_type(std::string_view type);
// The list of node number `node`, from 0: its own device addresses (198.18.0.0/15, RFC 2544: for
// tests), one super-pod for all. `cards`: at most kCardsMost.
std::string stand_in_cards(std::string_view type, std::uint32_t node, std::uint32_t cards);

struct CardList {
  std::string type;  // empty: not such a list
  std::uint32_t cards = 0;
};
CardList read_cards(const std::filesystem::path& list);

}  // namespace muster::client
