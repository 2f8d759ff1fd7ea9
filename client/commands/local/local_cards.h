// Makes stand-in devices for a private cluster: a device list for its agents
// (agent/probe/fixed_inventory.h). Stateless functions on plain values and one file. One thread.
//
// With it, specs for Ascend or NVIDIA nodes, with rank tables, can be tried on a machine without
// such devices. No program finds a card there. The list has only what a scheduler and a launcher
// need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::client {

inline constexpr std::uint32_t kCardsMost = 16;  // of a node: the limit of HCCL

// True for "ascend910", "ascend910b", "ascend910_93" and "nvidia".
bool is_card_type(std::string_view type);
// Returns the list of node number `node`, counted from 0. Ascend devices each have an address
// (198.18.0.0/15, RFC 2544: for tests); all ascend910_93 are in one super-pod. `cards` is at most
// kCardsMost.
std::string stand_in_cards(std::string_view type, std::uint32_t node, std::uint32_t cards);

struct CardList {
  std::string type;  // empty: not such a list
  std::uint32_t cards = 0;
};
CardList read_cards(const std::filesystem::path& list);

}  // namespace muster::client
