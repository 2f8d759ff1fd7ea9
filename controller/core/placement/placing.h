// Placement inside the core: place() (core.h) in addition to what earlier placements of the same
// propose() have taken. Pure.
//
//   place.cc          the order of the checks, and the answer
//   candidates.h      what each node could give, and gives now
//   gang.h            which nodes, in which order
//   card_choice.h     which of a node's devices
//   pod_plan.h        out of which super-pods
//   table_hosts.h     a rank table of the user's own
//   host_ports.h      ports
//   place_why.h       what the job waits for
//   training_route.h  where its nodes meet
//   one_storage.h     which of them share the storage of its checkpoints
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"
#include "controller/core/placement/place.h"

namespace muster::core {

struct Taken {
  std::set<std::pair<NodeName, std::uint32_t>> devices;
  std::set<std::pair<std::string, std::uint16_t>> ports;
  std::map<NodeName, std::vector<std::uint16_t>> blocks;  // of ports for HCCL, by their first port

  void take(const PlaceResult& placed);
};

// The arguments of one placement. The parts of a placement keep a reference to it, so it outlives
// them.
struct Placing {
  const Taken& taken;
  const Ledger& ledger;
  const Presence& presence;
  const JobRecord& job;
  Now now;
  const Limits& limits;
  std::size_t* checks = nullptr;  // counted down to 0; nullptr: nobody counts
};

PlaceResult place_around(const Taken& taken, const Ledger& ledger, const Presence& presence,
                         const JobRecord& job, Now now, const Limits& limits,
                         std::size_t* checks = nullptr);

// The registered nodes could not hold the job, even if they were idle. The result depends only on
// the nodes, their drains, the probes of their devices, the checks of their outputs, the limits,
// and requirements_of().
bool never_fits(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now,
                const Limits& limits, std::size_t* checks = nullptr);

// Numbers ranks without gaps, in node order. `once` puts its only process on the first node.
void number_ranks(std::vector<PlacedNode>& nodes, const v1::JobSpec& spec);

}  // namespace muster::core
