// The controller's decisions as functions over values. Pure.
//
// They use no Asio, gRPC, YAML, spdlog, files, clock or randomness.
//
//   decide(ledger, presence, input, now)   accepts an input as events, or refuses it (decide.cc)
//   apply(ledger, index, event)            folds one event; cannot fail; a replay is this in a loop
//                                          (apply.cc)
//   propose(ledger, presence, now)         returns inputs for decide and the next wake-up time; has
//                                          no effect by itself (propose.cc)
//   desired(ledger, node)                  returns what the node should run, from durable facts
//                                          alone (desired.cc)
//   observe(presence, observation, now)    records the latest reading (observe.cc)
//
// turn() (turn.h) runs them as one batch. It decides and applies every input. Then it proposes,
// through decide and apply, until propose returns nothing new. The shell makes ONE append and sync
// of the result. Only then replies, acknowledgements, watch events and orders leave together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/event.h"
#include "controller/core/model/input.h"
#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"
#include "controller/core/placement/place.h"
#include "controller/core/recovery/uploads.h"

namespace muster::core {

Decision decide(const Ledger& ledger, const Presence& presence, const Input& input, Now now,
                const Limits& limits);

// `index` is the journal index of the event. Events of one batch may share an index.
void apply(Ledger& ledger, JournalIndex index, const Event& event);

struct Proposal {
  std::vector<Input> inputs;
  std::optional<BootTime> wake_at;  // nothing changes before this by time alone
};
// Where the next walk over the queue continues after a walk that used up its turn.
struct QueueCursor {
  std::int64_t behind = INT64_MIN;  // the walk continues behind this place
  // The first place that was not placed. If a job later has a smaller place, the walk starts at the
  // front.
  std::int64_t front = INT64_MIN;
  // Something has changed since. At the end of the queue, the jobs up to `behind` are checked once
  // more.
  bool again = false;
  // The earliest time at which one of the jobs up to `behind` may fit.
  std::optional<BootTime> wake_at;
};
// Limits how much one batch may place and check, because all other requests wait meanwhile.
// propose() counts it down, also over several calls.
struct PlacingTurn {
  std::size_t placements = 64;
  // Checks of what a node could give. One job takes as many as it needs.
  std::size_t checks = 1U << 17U;
  // In: from the previous turn. Out: set if jobs remain for the next turn.
  std::optional<QueueCursor> cursor = {};
};
Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
                 PlacingTurn& turn);
// Uses a new turn.
Proposal propose(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits);

void observe(Presence& presence, const Ledger& ledger, const Observation& observation, Now now);

// --- what a node should do -----------------------------------------------------------------------
// controller/links turns it into v1.Order, and asks common/engine for the command lines.
enum class Want : std::uint8_t { Run, Stop, Upload, Forget };
struct Assignment {
  JobId job;
  AttemptNo attempt;
  Want want = Want::Run;
  UploadOrder upload = {};  // with Upload
  friend bool operator==(const Assignment&, const Assignment&) = default;
};
std::vector<Assignment> desired(const Ledger& ledger, const NodeName& node);

// Whether the node may delete its run directory of this attempt: the part is swept and its logs are
// at the controller, or the job is archived.
//
// desired() lists only the newest closed parts (kForgetListMax). So the code that makes Orders adds
// a Forget for each attempt in a Hello for which this is true.
bool may_forget(const Ledger& ledger, const NodeName& node, const JobId& job, AttemptNo attempt);

// --- why a job waits, as a value -----------------------------------------------------------------
std::vector<std::string> explain(const Ledger& ledger, const Presence& presence,
                                 const JobRecord& job, Now now, const Limits& limits);

}  // namespace muster::core
