// Placement inside the core: what place() (core.h) does, with what earlier placements of the same propose() have already taken. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

struct Taken {
  std::set<std::pair<NodeName, std::uint32_t>> devices;
  std::set<std::pair<std::string, std::uint16_t>> ports;
  std::map<NodeName, std::vector<std::uint16_t>> blocks;  // of ports for HCCL, by their first

  void take(const PlaceResult& placed);
};
PlaceResult place_beside(const Taken& taken, const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits);

// The registered nodes could not hold it, even if they were idle. Depends on the nodes, what is seen of their devices, and demands_of() alone.
bool never_fits(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits);

// What of a job decides which nodes could ever hold it: equal for equal demands.
std::string demands_of(const v1::JobSpec& spec);

// Ranks dense, by node order; `once` puts its only process on the first node.
void number_ranks(std::vector<PlacedNode>& nodes, const v1::JobSpec& spec);

}  // namespace muster::core
