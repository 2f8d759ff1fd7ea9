// Who comes first by a table's rank ids, whatever the order in which its file lists them. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

struct ServerRanks {
  std::size_t server = 0;            // place in RankTable::servers
  std::vector<std::size_t> devices;  // places in its devices, by rank
};

// Of a table that check() found sound. Error: ranks of one server do not follow each other, which
// HCCL reads and its documentation forbids.
Result<std::vector<ServerRanks>> by_rank(const RankTable& table);

}  // namespace muster::ranktable
