// The rules by which HCCL, the library that reads rank tables, takes or refuses one. From CANN's
// open sources (topoinfo_ranktable*.cc, config.cc, hccl_communicator_attrs.cc) and hicann/hccl's
// pages on rank tables; where releases differ, a table has to suit the older ones too. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "common/engine/ranktable/chip.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

// What findings call the lists, for inputs that are no rank table.
struct Names {
  std::string_view servers = "server_list";
  std::string_view devices = "device";
};

// Without a chip: the rules that hold on all of them are problems; that one refuses what others
// take is a note.
Findings check(const RankTable& table, std::optional<Chip> chip, const Names& names = {});

}  // namespace muster::ranktable
