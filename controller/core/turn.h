// One batch of the controller, as a function over values. Pure.
//
// The shell, the simulator and the scenarios run the same turn. Their drivers collect the items
// before it. After it they append its rows, sync, and only then release what the turn brought:
// orders, events, replies, reads. Nothing of a turn is visible before its rows are durable.
//
//   turn()        takes the items in their order, then proposes to a bounded fixed point
//   first_turn()  begins the epoch of a controller that has just loaded its journal
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/journal_end/lost_end.h"

namespace muster::core {

// What a running controller knows. All but the ledger is lost with its process.
struct State {
  Ledger ledger;
  Presence presence;
  JournalIndex last;  // the last index that was used
  // Set: the last turn could not check all queued jobs.
  std::optional<QueueCursor> placing_goes_on = {};
};

// An input from a client or from an agent.
struct Asked {
  Input input;
  // Observed directly after the input, unless the input was refused.
  std::optional<Observation> then = {};
};
struct TurnItem {
  Now heard;  // its arrival. An input is decided for this moment.
  std::variant<Asked, Observation> what;
};
// True: the item is only a heartbeat, or the acknowledgement of one.
bool is_heartbeat(const TurnItem& item);

struct Answer {
  std::optional<Error> refusal;
  std::optional<JobId> job;  // for a submission
  bool repeated = false;
  std::size_t rows = 0;  // that it added; 0: it was known, or it has no meaning any more
};

struct TurnInput {
  std::span<const TurnItem> items;
  Now now;  // the rows' time
  const Limits& limits;
  // Not empty: why nothing is accepted any more. Every input is refused with this text.
  std::string_view paused = {};
  // Until when deadlines are judged (horizon.h). Nothing: nothing is proposed.
  std::optional<BootTime> judge_until;
  std::size_t rounds_max = 64;  // of propose()
  PlacingTurn placing = {};     // how much the turn may place and check; the cursor is not used
};

struct Turned {
  std::vector<Row> rows;
  std::vector<Answer> answers;  // of the inputs among the items, in their order
  // If the turn proposed: when the next turn is due, though nothing arrives.
  std::optional<BootTime> wake_at;
  // What was proposed and came to nothing, with the reason. That is harmless: the next turn may
  // propose it again.
  std::vector<std::string> moot;
  bool restless = false;  // rounds_max did not reach the fixed point; the rest comes next
};

// Sees every row, before and after it is applied. Its functions must not keep the references.
class TurnWatcher {
 public:
  virtual ~TurnWatcher() = default;
  virtual void before(const Row& /*row*/, const Ledger& /*ledger*/) {}
  virtual void after(const Row& row, const Ledger& ledger) = 0;
};

Turned turn(State& state, const TurnInput& input, TurnWatcher& watcher);

// `state` is what the journal gave.
struct FirstTurn {
  Now now;
  ClusterId new_cluster;  // used if the journal has no cluster yet
  std::string version;
  std::optional<LostEnd> lost = std::nullopt;
  std::string lineage_id = {};  // random, used if the journal's end was lost
  // What is left of these jobs is sound, but not complete, so nothing may be built on it. They are
  // stopped in the ordinary way. That frees their devices when these are proven free, and it shows
  // everybody the reason.
  std::map<JobId, std::string> unreadable = {};
};
Turned first_turn(State& state, const FirstTurn& input, const Limits& limits, TurnWatcher& watcher);

}  // namespace muster::core
