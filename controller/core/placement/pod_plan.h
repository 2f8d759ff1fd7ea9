// Chooses the super-pods from which a gang takes its nodes. Pure.
//
// Within a super-pod, cards communicate over HCCS; between two, over the network. So one super-pod
// is better than two, and a smaller one that holds the job is better than a larger one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace muster::core {

// The nodes of one super-pod that fit.
struct PodRoom {
  std::string id;  // empty: the nodes are in no super-pod
  std::size_t nodes = 0;
  // How many of these nodes have addresses of their cards. A rank table over several super-pods
  // needs them.
  std::size_t addressed = 0;
};

// How many nodes to take out of each super-pod.
using PodPlan = std::map<std::string, std::size_t>;

enum class PodRule {
  Prefer,  // as few super-pods as possible
  Table,   // for a rank table: equal shares; all nodes are in super-pods, or none is
};

// Plans to try, in this order. `last` is where the job ran before. Empty: the rule cannot be
// respected.
std::vector<PodPlan> pod_plans(const std::vector<PodRoom>& rooms, std::size_t nodes, PodRule rule,
                               const PodPlan& last);

}  // namespace muster::core
