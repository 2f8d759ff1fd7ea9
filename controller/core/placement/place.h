// Places one job on the nodes as they are now: all ranks or none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// Placement alone: all or nothing. decide (for a refusal), propose, explain and PlanJob use it.
//
// - `why` is set if the job does not fit now.
// - `never` is set if the registered nodes could not hold the job even if they were idle. It is not
//   set if no node is registered.
// - `retry_at` is set if the job waits only for the end of a pause: of a node that could not start
//   it, of a lost attempt that may still run, or of its own recovery.backoff. Also if it waits for
//   a secret: then the time means nothing, and the secret itself wakes the job.
struct PlaceResult {
  std::vector<PlacedNode> nodes;  // empty: does not fit
  std::uint16_t master_port = 0;
  std::string why;
  bool never = false;
  std::optional<BootTime> retry_at;
};
PlaceResult place(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now,
                  const Limits& limits);

}  // namespace muster::core
