// The controller's brain: pure functions over values (no Asio, gRPC, YAML, spdlog, files, clock or
// randomness).
//
//   decide(ledger, presence, input, now)   what is accepted as having happened, or a refusal
//                                          decide.cc
//   apply(ledger, index, event)            a fold; replay is this in a loop; cannot fail apply.cc
//   propose(ledger, presence, now)         what should be asked of decide next, and when to look
//                                          again; no effect by itself propose.cc
//   desired(ledger, node)                  what the node should run: from durable facts alone
//                                          desired.cc
//   observe(presence, observation, now)    the latest reading observe.cc
//
// A batch (the shell): decide and apply every input; propose, through decide and apply, until it
// proposes nothing new (bounded); ONE append and sync; then replies, acks, watch events and orders
// leave together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/core/event.h"
#include "controller/core/input.h"
#include "controller/core/ledger.h"
#include "controller/core/presence.h"

namespace muster::core {

struct Limits {
  std::uint32_t queued_jobs_max = 100'000;
  std::uint16_t port_first = 20'000, port_last = 29'999;
  // without a word; heartbeats come each second
  Duration silent_after = std::chrono::milliseconds(3'200);
  // over orphan_grace, before the fence trusts it
  Duration grace_margin = std::chrono::seconds(5);
  // placement to NodeStarted of a connected node
  Duration start_timeout = std::chrono::seconds(60);
  // after a start nothing is placed before all known nodes were heard, for at most so long
  Duration hear_first{};
  // verdict waits this long for exits on silent nodes
  Duration exit_bound = std::chrono::seconds(2);
  // a finished job stays in the fold this long; 0 in tests
  Duration archive_after = std::chrono::minutes(10);
  Duration tombstone_keep = std::chrono::hours(24 * 7);
  // The oldest go earlier when there are more: about 1 KiB of memory each, and a job every 2.5
  // seconds the week through.
  std::size_t tombstones_max = 250'000;
  std::uint32_t attempts_without_progress_max = 5;
  // A node that could not start its part is left alone by that job: for so long after the first
  // time, twice as long after each further one in a row.
  Duration start_pause = std::chrono::seconds(10), start_pause_max = std::chrono::minutes(5);
  // starts of a job in a row that ports of muster's own choice may cost before they are charged
  std::uint32_t taken_ports_max = 8;
  // two equal failures within so many steps of the checkpoint both went on from quarantine it
  std::int64_t suspect_steps = 5;
};

struct Decision {
  std::vector<EventBody> events;  // may be empty: already known
  std::optional<Error> refusal;   // then events is empty
  // of a submission: the job it made, or the earlier one with the same request id
  std::optional<JobId> job;
  bool repeated = false;
};

Decision decide(const Ledger& ledger, const Presence& presence, const Input& input, Now now,
                const Limits& limits);

// `index` is the journal index the event got. Events of one batch may share an index.
void apply(Ledger& ledger, JournalIndex index, const Event& event);

struct Proposal {
  std::vector<Input> inputs;
  std::optional<BootTime> wake_at;  // nothing will change before this by time alone
};
// Where a look at the queue that ran out goes on.
struct QueueCursor {
  std::int64_t behind = INT64_MIN;  // this place
  // the first place that was left: who comes back to one before that is looked at first
  std::int64_t front = INT64_MIN;
  // something has changed meanwhile: at the end those before it are looked at once more
  bool again = false;
  std::optional<BootTime> wake_at;  // what those before it wait for
};
// What one batch may place, and look at for it: everybody else waits meanwhile. propose() takes
// from it, also over several calls.
struct PlacingTurn {
  std::size_t placements = 64;
  // at what a node could give; one job takes as many as it needs
  std::size_t checks = 1U << 17U;
  // in: from the turn before; out: set where there is more, for the next turn
  std::optional<QueueCursor> cursor = {};
};
Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
                 PlacingTurn& turn);
// a turn of its own
Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits);

void observe(Presence& presence, const Ledger& ledger, const Observation& observation, Now now);

// --- what a node should do (turned into v1.Order by controller/links, which asks common/engine for
// command lines) -------
enum class Want : std::uint8_t { Run, Stop, Forget };
struct Assignment {
  JobId job;
  AttemptNo attempt;
  Want want = Want::Run;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};
std::vector<Assignment> desired(const Ledger& ledger, const NodeName& node);

// Whether the node's run directory of this attempt may go: swept and logs here, or archived.
// desired() lists only the newest closed parts (kForgetListMax), so whoever makes Orders adds a
// Forget for each held attempt of a Hello for which this holds.
bool may_forget(const Ledger& ledger, const NodeName& node, const JobId& job, AttemptNo attempt);

// --- why is it waiting; a value, not a log line --------------------------------------------------
std::vector<std::string> explain(const Ledger& ledger, const Presence& presence,
                                 const JobRecord& job, Now now, const Limits& limits);

// Placement alone: all or nothing. `why` is set when it does not fit now; `never` when the
// registered nodes could not hold it even if idle (never with no node registered); `retry_at` when
// all it waits for is the pause of a node that could not start it. Used by decide (refusal),
// propose, explain and PlanJob.
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
