// Super-pods: out of which a gang takes its nodes. Within one, cards talk over HCCS; between two,
// over the network. So one is better than two, and a smaller one that holds the job better than a
// larger one. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace muster::core {

// Nodes that would do.
struct PodRoom {
  std::string id;  // empty: they are in none
  std::size_t nodes = 0;
  // of these, with addresses of their cards, which a rank table needs where it has several
  // super-pods
  std::size_t addressed = 0;
};

// How many nodes out of each.
using PodPlan = std::map<std::string, std::size_t>;

enum class PodRule {
  Prefer,  // as few super-pods as can be
  Table,   // a rank table is made: every super-pod gives as many, nobody is in none, or all are
};

// What to try, in this order; `last` is where the job ran before. Empty: the rule cannot be kept.
std::vector<PodPlan> pod_plans(const std::vector<PodRoom>& rooms, std::size_t nodes, PodRule rule,
                               const PodPlan& last);

}  // namespace muster::core
