// Orders the stages of a chain. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

namespace muster::spec {

// For each stage, the numbers of the stages that it names.
using StageNames = std::vector<std::vector<std::size_t>>;

struct StageOrder {
  // Each stage comes after those that it names, otherwise by number. Stages of a cycle are left
  // out, and so are the stages that depend on them.
  std::vector<std::size_t> order;
  // The stages that wait for each other, with the first one again at the end; empty if there is no
  // cycle.
  std::vector<std::size_t> cycle;
};
StageOrder order_stages(const StageNames& names);

// Returns for each stage all stages before it, directly or through others. `order` must have no
// cycle.
std::vector<std::set<std::size_t>> stages_before(const StageNames& names,
                                                 const std::vector<std::size_t>& order);

}  // namespace muster::spec
