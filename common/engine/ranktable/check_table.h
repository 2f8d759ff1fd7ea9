// The rules by which HCCL, the library that reads rank tables, takes or refuses one. From CANN's open sources (topoinfo_ranktable*.cc, config.cc,
// hccl_communicator_attrs.cc) and hicann/hccl's pages on rank tables; where releases differ, a table has to suit the older ones too. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

enum class Chip : std::uint8_t { A910, A910B, A910_93 };  // "910", "910b", "910_93": Atlas training, A2, A3
std::optional<Chip> parse_chip(std::string_view text);
std::string_view to_string(Chip chip);

// What findings call the lists, for inputs that are no rank table.
struct Names {
  std::string_view servers = "server_list";
  std::string_view devices = "device";
};

// Without a chip: the rules that hold on all of them are problems; that one refuses what others take is a note.
Findings check(const RankTable& table, std::optional<Chip> chip, const Names& names = {});

}  // namespace muster::ranktable
