// What an accepted loss of the journal's end means for the jobs that had not ended in the rest of
// the journal. It also detects a loss that no head file shows, by agents that know more than this
// journal. Pure.
//
// The lost end may have contained placements. Nodes may still run those attempts, have saved under
// their numbers, and have sent logs that are stored under them. So the next attempt's number is
// beyond every number that may have been used (next_attempt.h). The attempt is not placed before
// every node has reported what it has, or was silent for longer than anything of the job can run.
//
// An attempt of which all nodes report that they have it goes on, also one that was just starting:
// they report its facts again. If a node that was being started does not have it, nobody knows
// whether the node has carried out, ended and forgotten the order. An order that is sent twice is a
// second start. So that attempt is broken.
//
// In the lost time, a node may have been ordered to forget a run, and does not have it any more.
// This looks like a state directory that was put back from an older copy. So the node is ordered to
// stop the run: it searches for processes of it, and reports that it is swept. If the ledger waits
// only for the run's logs, none will come (NodeSeen::forgotten).
//
// A node may have registered, or have come back from the dead, in the lost time. So after a loss
// nothing of the ledger's jobs is placed before Limits::hear_after_loss, in which every agent tries
// again, and no node counts as dead before it is declared dead again.
//
// The first batch of the start that continues from there records the loss (JournalEndLost), for
// ever, and begins a new lineage (common/base/lineage.h). Agents keep the newest lineage that they
// have seen, and compare it before the epoch and the index. So the epoch of a new lineage may be
// lower than epochs that were lost.
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

#include "common/base/lineage.h"
#include "controller/core/model/event.h"
#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// No journal gives a higher number, so a higher one is not believed.
inline constexpr std::uint32_t kAttemptReportedMax = 1'000'000'000;
// More than the attempts of any job. So many lost rows, or an unknown number of them, skip at
// least this.
inline constexpr std::uint64_t kAttemptsUnknown = 1'000'000;

// An accepted loss that no JournalEndLost records yet.
struct LostEnd {
  std::optional<std::uint64_t> rows;  // nothing: unknown
  // The highest generation that is known to have existed; losses may be among what was lost.
  std::uint64_t generation = 0;
};
// The event of this loss, for a journal that ends in `before`. `id` is random. `ticks` is the wall
// time in seconds: if nobody knows how many rows were lost, and one copy is restored and accepted
// more than once, its attempts get other numbers each time.
JournalEndLost end_lost(const Lineage& before, const LostEnd& lost, std::string id,
                        std::uint64_t ticks);

// Whether the attempt's nodes scan for checkpoints first (NodeLaunch.scan_first). The records of
// some checkpoints were lost with the journal's end, but the files are still on disk. So the nodes
// scan before the attempt resumes or begins anew. This is true for the first attempt behind a gap
// in the numbers, and for later ones until a node has scanned.
bool scans_first(const JobRecord& job, const AttemptRecord& attempt);

// Registered nodes that have not reported since this start what they have. Nothing: the job may be
// placed.
struct Unheard {
  // Empty: after a loss there may be nodes that are not in the ledger.
  std::vector<NodeName> nodes;
  BootTime until{};  // after a loss: then nothing of the job can run there any more
};
std::optional<Unheard> unheard_since_start(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, Now now, const Limits& limits);

// What an agent reports about the controllers of this cluster that it has met.
struct AgentReach {
  Lineage lineage;        // the newest
  Epoch epoch;            // the highest of that lineage
  JournalIndex acked;     // the highest in an acknowledgement of that lineage
  bool welcomed = false;  // by this controller, since its start
};
// What this controller's journal can have sent to agents.
struct Reach {
  Lineage lineage;
  Epoch epoch;
  JournalIndex loaded;  // the journal's last index before this start
  JournalIndex last;    // at the moment
};
// The limits of a believable lead over this journal. No controller of one cluster gets further.
inline constexpr std::uint64_t kGenerationsBeyondMost = 64;
inline constexpr std::uint64_t kEpochsBeyondMost = 1'000'000;
inline constexpr std::uint64_t kRowsBeyondMost = 1'000'000'000'000;
bool believable_reach(const AgentReach& reported, const Reach& reach);
// The agent was sent something that this journal cannot have. So the journal is older than it
// should be, and a part of it was written twice.
bool reaches_beyond(const AgentReach& reported, const Reach& reach);

}  // namespace muster::core
