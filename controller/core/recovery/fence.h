// The fence: decides when no rank of an attempt can advance any more, so that the next attempt may
// be placed. Pure. No other code decides this.
//
//   a  every part is swept, or can run nothing any more: its node is declared dead, or was silent
//      for longer than the job's orphan grace
//   b  lockstep jobs: one rank is known to be stopped, and every part that rule a does not cover is
//      on a silent node (its devices stay reserved)
//   c  otherwise: wait, and report for what
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

enum class PartLiveness : std::uint8_t { Swept, Dead, GraceOver, Silent, Reachable };

struct PartCheck {
  PartLiveness liveness = PartLiveness::Reachable;
  std::optional<BootTime> check_at;  // when time alone may change it
  std::optional<BootTime> over_at;   // when time alone ends the grace
};
// Whether the node is there, whatever runs on it.
PartCheck check_contact(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                        const NodeName& node, Now now, const Limits& limits);
PartCheck check_part(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                     const NodePart& part, Now now, const Limits& limits);
inline bool can_run_nothing(PartLiveness liveness) {
  return liveness == PartLiveness::Swept || liveness == PartLiveness::Dead ||
         liveness == PartLiveness::GraceOver;
}

struct FenceCheck {
  bool holds = false;
  std::string rule;                // if it holds
  std::vector<std::string> waits;  // if it does not hold
  std::optional<BootTime> check_at;
};
FenceCheck check_fence(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                       const AttemptRecord& attempt, Now now, const Limits& limits);

// Every part can run nothing any more: rule a alone.
bool nothing_runs(const Ledger& ledger, const Presence& presence, const JobRecord& job,
                  const AttemptRecord& attempt, Now now, const Limits& limits);

inline void sooner(std::optional<BootTime>& earliest, std::optional<BootTime> other) {
  if (other && (!earliest || *other < *earliest)) earliest = other;
}

}  // namespace muster::core
