// Placement inside the core: what place() (core.h) does, with what earlier placements of the same
// propose() have already taken. Pure.
//
//   place.cc        the order of questions, and the answer candidates.h what each node could give,
//                   and gives now
//   gang.h          which nodes, in which order card_choice.h which of a node's devices
//   pod_plan.h      out of which super-pods table_hosts.h a rank table of the user's own
//   host_ports.h    ports                                       place_why.h     what it waits for
//   training_route.h  where its nodes meet
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

// All that one placement goes by. The parts of a placement keep a reference: it outlives them.
struct Placing {
  const Taken& taken;
  const Ledger& ledger;
  const Presence& presence;
  const JobRecord& job;
  Now now;
  const Limits& limits;
  std::size_t* checks = nullptr;  // counted down, as far as there are any; nullptr: nobody counts
};

PlaceResult place_around(const Taken& taken, const Ledger& ledger, const Presence& presence,
                         const JobRecord& job, Now now, const Limits& limits,
                         std::size_t* checks = nullptr);

// The registered nodes could not hold it, even if they were idle. Depends on the nodes, what is
// seen of their devices, the limits, and requirements_of() alone.
bool never_fits(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now,
                const Limits& limits, std::size_t* checks = nullptr);

// What of a job decides which nodes could ever hold it: equal for equal demands.
std::string requirements_of(const v1::JobSpec& spec);

// Ranks dense, by node order; `once` puts its only process on the first node.
void number_ranks(std::vector<PlacedNode>& nodes, const v1::JobSpec& spec);

}  // namespace muster::core
