// What the shell shows to edges, and the interfaces by which it notifies them. The shell creates a
// View for each call. Everything is used on the shell's strand, and only during the call.
//
// Copy out what is needed later.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/error.h"
#include "controller/core/core.h"
#include "controller/journal/journal.h"
#include "controller/shell/history.h"

namespace muster::controller {

struct View {
  const core::Ledger& ledger;  // all of it is durable
  const core::Presence& presence;
  const History& history;
  const core::Limits& limits;
  Now now;
  const std::string& paused;  // why nothing is accepted any more; empty: inputs are accepted
};

// The answer to one input, after the input's batch is durable.
struct Outcome {
  std::optional<Error> refusal;
  std::optional<JobId> job;  // for a submission
  bool repeated = false;
  JournalIndex index;  // everything up to here is durable
};
using ReplyFn = std::move_only_function<void(const Outcome&, const View&)>;
using ReadFn = std::move_only_function<void(const View&)>;

// controller/links implements it: it turns what became durable into orders.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_release(std::span<const journal::Row> rows, const View& view) = 0;
  // Called after the heartbeat was observed. The ledger may be ahead of what is durable, so only
  // the presence is passed.
  virtual void on_heartbeat(const core::HeartbeatHeard& heartbeat,
                            const core::Presence& presence) = 0;
};

// A client's stream. Its functions must only queue.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // The durable events of its job (or of all), in order. The view is from the same moment.
  virtual void on_events(std::span<const EventPtr> events, const View& view) = 0;
  // A heartbeat had a reading of its job.
  virtual void on_reading(const JobId& job, const core::Presence& presence) = 0;
  // An agent connected or disconnected.
  virtual void on_presence(const core::Presence& presence) = 0;
};

}  // namespace muster::controller
