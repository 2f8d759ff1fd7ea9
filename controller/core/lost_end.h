// What an accepted loss of the journal's end means for the jobs that had not ended in what is left
// of it; and how a loss is known that no head file shows: by agents, who were told more than this
// journal has. Pure.
//
// Attempts may have been placed that this journal does not have: nodes may still run them, saved
// under their numbers, and sent logs that are kept under these. So the next attempt's number goes
// beyond whatever may have been given out, and it is not placed before every node has said what it
// has, or has been without word for longer than anything of the job can run without. An attempt
// that was just being started is broken: whether a node has carried its order out, ended and
// forgotten it, nobody can say, and an order that is given twice is a second start.
//
// What a node was told to forget in that time it does not have any more: of a run that the ledger
// takes for started, or whose logs it waits for, that says that nothing is left
// (NodeSeen::forgotten).
//
// The loss itself is in the ledger: the controller's next start skips kLossEpochs epochs for each
// row that was lost, which is more than anything else does, and it stays in the journal for ever.
// So many for each, that the epoch is a new one even where losses were among the rows that were
// lost.
//
// An older copy of the whole directory shows no loss, and its controller could order again what it
// had ordered before. An agent that was told more gives it away, at its Hello: it gets no order.
// Nodes that were told less must not get work in the meantime, so after every start nothing is
// placed before all known nodes have said Hello, or Limits::hear_first has passed: an agent that is
// well tries at least each half second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {

// more than a controller is ever started
inline constexpr std::uint64_t kLossEpochs = 1'000'000;
// when nobody can tell how many were lost
inline constexpr std::uint64_t kLossRowsUnknown = 1'000'000;
// no journal gave out a higher number: not believed
inline constexpr std::uint32_t kAttemptReportedMax = 1'000'000'000;

// For unknown losses, of which several may be among the rows that were lost: more than they were
// together, as time goes on. By the time of day, in seconds, so that numbers and epochs differ, and
// grow, where one copy is put back and accepted more than once.
inline std::uint64_t rows_unknown(std::uint64_t losses, std::uint64_t ticks) {
  return (losses > 1 ? 2 * losses - 1 : 1) * kLossRowsUnknown + ticks % kLossRowsUnknown;
}

inline Epoch next_epoch(Epoch before, std::uint64_t rows_lost) {
  return Epoch(before.value + 1 + rows_lost * kLossEpochs);
}

// How many attempts of one job a lost end may have named, at most: each was a row. 0: no loss,
// `started` is an ordinary start behind `before` (0: it is the first of all).
inline std::uint32_t attempts_lost(Epoch before, Epoch started) {
  if (before.value == 0 || started.value <= before.value + kLossEpochs) return 0;
  const std::uint64_t rows = (started.value - before.value - 1) / kLossEpochs;
  // More than unknown: the great number that the journal itself counts for an unknown loss of
  // before, and what came behind that.
  return static_cast<std::uint32_t>(
      rows <= kLossRowsUnknown ? rows : kLossRowsUnknown + rows % kLossRowsUnknown);
}

// Of the job's next attempt: beyond every number that was given out, as far as the ledger and the
// nodes know.
AttemptNo next_attempt(const JobRecord& job, const Presence& presence);

// The records of checkpoints that were lost with the end lie on disk all the same. Before this
// attempt goes on from what is known, or from the beginning, its nodes look there
// (NodeLaunch.scan_first): it is the first behind numbers that were left out, or those before it
// came to nothing before a node had looked.
bool scans_first(const JobRecord& job, const AttemptRecord& attempt);

// Registered nodes that have not said since this start what they have. Nothing: the job may be
// placed.
struct Unheard {
  std::vector<NodeName> nodes;
  BootTime until{};  // after a loss: from then on nothing of the job can run there any more
};
std::optional<Unheard> unheard_since_start(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, Now now, const Limits& limits);

// What an agent says that controllers of this cluster have told it, and what this controller's
// journal can have told.
struct AgentReach {
  Epoch epoch;            // the highest it has seen
  JournalIndex acked;     // the highest in an acknowledgement
  bool welcomed = false;  // by this controller, since its start
};
struct Reach {
  Epoch epoch;
  JournalIndex loaded;  // the journal's last index before this start
  JournalIndex last;    // now
};
// Further beyond its journal no controller of one cluster gets, by as many unknown losses as
// anybody would accept; and no accepted loss would reach it.
inline constexpr std::uint64_t kReachBeyondMost = 64 * kLossRowsUnknown * kLossEpochs;
bool believable_reach(const AgentReach& reported, const Reach& reach);
// The agent was told what this journal cannot have told: it is older than it must be, and a part of
// it was written twice.
bool reaches_beyond(const AgentReach& reported, const Reach& reach);

}  // namespace muster::core
