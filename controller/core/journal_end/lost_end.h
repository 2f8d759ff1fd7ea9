// What an accepted loss of the journal's end means for the jobs that had not ended in the rest of
// the journal. It also detects a loss that no head file shows, by agents that know more than this
// journal. Pure.
//
// The lost end may have contained placements. Nodes may still run those attempts, have saved under
// their numbers, and have sent logs that are stored under them. So the next attempt's number is
// beyond every number that may have been used (next_attempt.h). The attempt is not placed before
// every node has reported what it has, or was silent for longer than anything of the job can run.
//
// An attempt that was just starting is broken. Nobody knows whether a node has carried out, ended
// and forgotten the order. An order that is sent twice is a second start.
//
// In the lost time, a node may have been ordered to forget a run, and does not have it any more. If
// the ledger takes the run for started, or waits for its logs, this proves that nothing of it is
// left (NodeSeen::forgotten).
//
// The ledger shows the loss itself: the controller's next start skips kLossEpochs epochs for each
// lost row, which nothing else does. That start stays in the journal for ever. It skips that many
// for each row so that the epoch is new even if losses were among the lost rows.
//
// An older copy of the whole directory shows no loss, and its controller could repeat old orders.
// An agent that was sent more reveals this at its Hello, and gets no order. Until then, nodes that
// were sent less must not get work. So after every start nothing is placed before all known nodes
// have sent Hello, or Limits::hear_first has passed. A healthy agent tries at least every half
// second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// More than the number of starts of any controller.
inline constexpr std::uint64_t kLossEpochs = 1'000'000;
// Used if nobody knows how many rows were lost.
inline constexpr std::uint64_t kLossRowsUnknown = 1'000'000;
// No journal gives a higher number, so a higher one is not believed.
inline constexpr std::uint32_t kAttemptReportedMax = 1'000'000'000;

// The number of rows to assume for `losses` unknown losses; several may be among the lost rows. The
// result is more than all of them together. `ticks` is the wall time in seconds: if one copy is
// restored and accepted more than once, its numbers and epochs differ and grow.
inline std::uint64_t rows_unknown(std::uint64_t losses, std::uint64_t ticks) {
  return (losses > 1 ? 2 * losses - 1 : 1) * kLossRowsUnknown + ticks % kLossRowsUnknown;
}

inline Epoch next_epoch(Epoch before, std::uint64_t rows_lost) {
  return Epoch(before.value + 1 + rows_lost * kLossEpochs);
}

// The maximum number of attempts of one job in the lost end: each was a row. 0: no loss; `started`
// is an ordinary start after `before` (before == 0: it is the first start of all).
inline std::uint32_t attempts_lost(Epoch before, Epoch started) {
  if (before.value == 0 || started.value <= before.value + kLossEpochs) return 0;
  const std::uint64_t rows = (started.value - before.value - 1) / kLossEpochs;
  // More rows than one unknown loss: the large number that the journal counts for an earlier
  // unknown loss, plus the rows behind it.
  return static_cast<std::uint32_t>(
      rows <= kLossRowsUnknown ? rows : kLossRowsUnknown + rows % kLossRowsUnknown);
}

// Whether the attempt's nodes scan for checkpoints first (NodeLaunch.scan_first). The records of
// some checkpoints were lost with the journal's end, but the files are still on disk. So the nodes
// scan before the attempt resumes or begins anew. This is true for the first attempt behind a gap
// in the numbers, and for later ones until a node has scanned.
bool scans_first(const JobRecord& job, const AttemptRecord& attempt);

// Registered nodes that have not reported since this start what they have. Nothing: the job may be
// placed.
struct Unheard {
  std::vector<NodeName> nodes;
  BootTime until{};  // after a loss: then nothing of the job can run there any more
};
std::optional<Unheard> unheard_since_start(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, Now now, const Limits& limits);

// What an agent reports about the controllers of this cluster that it has met.
struct AgentReach {
  Epoch epoch;            // the highest it has seen
  JournalIndex acked;     // the highest in an acknowledgement
  bool welcomed = false;  // by this controller, since its start
};
// What this controller's journal can have sent to agents.
struct Reach {
  Epoch epoch;
  JournalIndex loaded;  // the journal's last index before this start
  JournalIndex last;    // at the moment
};
// The limit of a believable lead over this journal: as many unknown losses as anybody would accept.
// No controller of one cluster gets further beyond its journal, and no accepted loss would reach
// further.
inline constexpr std::uint64_t kReachBeyondMost = 64 * kLossRowsUnknown * kLossEpochs;
bool believable_reach(const AgentReach& reported, const Reach& reach);
// The agent was sent something that this journal cannot have. So the journal is older than it
// should be, and a part of it was written twice.
bool reaches_beyond(const AgentReach& reported, const Reach& reach);

}  // namespace muster::core
