#include "common/spec/stage_order.h"

#include <algorithm>

namespace muster::spec {
namespace {

// Each stage without a place in the order names another stage without one. So a walk from one to
// the next ends in a cycle.
std::vector<std::size_t> cycle_among(const StageNames& names, const std::vector<bool>& placed) {
  std::vector<std::size_t> way;
  std::size_t at = static_cast<std::size_t>(std::ranges::find(placed, false) - placed.begin());
  while (std::ranges::find(way, at) == way.end()) {
    way.push_back(at);
    at = *std::ranges::find_if(names[at], [&](std::size_t named) { return !placed[named]; });
  }
  way.erase(way.begin(), std::ranges::find(way, at));
  std::ranges::reverse(way);  // in the order in which they would run
  std::ranges::rotate(way, std::ranges::min_element(way));
  way.push_back(way.front());
  return way;
}

}  // namespace

StageOrder order_stages(const StageNames& names) {
  StageOrder result;
  std::vector<bool> placed(names.size(), false);
  const auto ready = [&](std::size_t stage) {
    return !placed[stage] &&
           std::ranges::all_of(names[stage], [&](std::size_t named) { return placed[named]; });
  };
  while (result.order.size() < names.size()) {
    std::size_t next = 0;
    while (next < names.size() && !ready(next)) ++next;
    if (next == names.size()) {
      result.cycle = cycle_among(names, placed);
      return result;
    }
    placed[next] = true;
    result.order.push_back(next);
  }
  return result;
}

std::vector<std::set<std::size_t>> stages_before(const StageNames& names,
                                                 const std::vector<std::size_t>& order) {
  std::vector<std::set<std::size_t>> before(names.size());
  for (const std::size_t stage : order) {
    for (const std::size_t named : names[stage]) {
      before[stage].insert(named);
      before[stage].insert(before[named].begin(), before[named].end());
    }
  }
  return before;
}

}  // namespace muster::spec
