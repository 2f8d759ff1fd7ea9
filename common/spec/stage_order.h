// Which stage of a chain comes behind which. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

namespace muster::spec {

// For each stage those that it names, by their numbers.
using StageNames = std::vector<std::vector<std::size_t>>;

struct StageOrder {
  // each behind those that it names, else by number; without those of a cycle, and what comes
  // behind them
  std::vector<std::size_t> order;
  // stages that come behind each other, the first again at the end; empty: none
  std::vector<std::size_t> cycle;
};
StageOrder order_stages(const StageNames& names);

// All that come before each stage, directly or through others; `order` has no cycle.
std::vector<std::set<std::size_t>> stages_before(const StageNames& names,
                                                 const std::vector<std::size_t>& order);

}  // namespace muster::spec
