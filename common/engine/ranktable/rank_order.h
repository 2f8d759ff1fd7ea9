// The order of servers and devices by a table's rank ids. This order may differ from the order in
// the table's file. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

struct ServerRanks {
  std::size_t server = 0;            // index in RankTable::servers
  std::vector<std::size_t> devices;  // indexes in its devices, by rank
};

// check() must have found the table sound. Error: the ranks of one server are not consecutive. HCCL
// reads such a table, but its documentation forbids it.
Result<std::vector<ServerRanks>> by_rank(const RankTable& table);

}  // namespace muster::ranktable
