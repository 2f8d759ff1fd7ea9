// The rules by which HCCL, the library that reads rank tables, accepts or refuses a table. Pure.
//
// Sources: CANN's open sources (topoinfo_ranktable*.cc, config.cc, hccl_communicator_attrs.cc) and
// hicann/hccl's pages on rank tables. Where releases differ, a table must satisfy the older ones,
// too.
#pragma once

#include <optional>
#include <string_view>

#include "common/engine/ranktable/chip.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

// Names of the lists in findings, for inputs that are not a rank table.
struct Names {
  std::string_view servers = "server_list";
  std::string_view devices = "device";
};

// Without a chip, only rules that hold on all chips give problems. A rule by which one chip refuses
// what others accept gives a note.
Findings check(const RankTable& table, std::optional<Chip> chip, const Names& names = {});

}  // namespace muster::ranktable
