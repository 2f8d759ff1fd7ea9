// Matches a rank table of the user's own (resources.rank_table) with the registered nodes: which
// node each server is, and which of its devices. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/ranktable/chip.h"
#include "common/engine/ranktable/rank_order.h"
#include "common/engine/ranktable/rank_table.h"
#include "controller/core/placement/node_fit.h"

namespace muster::core {

struct OwnTable {
  ranktable::RankTable table;
  std::vector<ranktable::ServerRanks> order;  // of ranks
};
// Read once for each job. Nullptr: the spec has none, or one that common/spec refuses.
std::shared_ptr<const OwnTable> read_own_table(const v1::JobSpec& spec);

// The nodes in rank order. A server is the node with that name. Otherwise it is the only node with
// that training address, or with that address on an interface that others reach.
struct TableNodes {
  std::vector<const NodeRecord*> nodes;  // parallel to OwnTable::order; nullptr: no such node
  std::string why;                       // not empty: what is missing, and what exists
};
TableNodes find_nodes(const OwnTable& own, const Ledger& ledger, const v1::JobSpec& spec);

// The node's devices of this type that belong to the server, in rank order; or the reason why not.
Fit server_fit(const OwnTable& own, std::size_t place, const NodeRecord& node,
               const v1::JobSpec& spec, std::string_view type);

// Why HCCL would refuse the table on these chips. Empty: it would not, or the chip is not known.
std::string table_refusal(const OwnTable& own, std::span<const NodeRecord* const> nodes,
                          std::string_view type);

}  // namespace muster::core
