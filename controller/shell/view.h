// What the shell shows to edges, and how it tells them. Everything here is used on the shell's
// strand only, and only while called: copy out what is needed later.
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
  const core::Ledger& ledger;  // durable, all of it
  const core::Presence& presence;
  const History& history;
  const core::Limits& limits;
  Now now;
  const std::string& paused;  // why nothing is accepted any more; empty: it is not so
};

// Answer to one input, after the batch that took it is durable.
struct Outcome {
  std::optional<Error> refusal;
  std::optional<JobId> job;  // of a submission
  bool repeated = false;
  JournalIndex index;  // everything up to here is durable
};
using ReplyFn = std::move_only_function<void(const Outcome&, const View&)>;
using ReadFn = std::move_only_function<void(const View&)>;

// links: turns what became durable into orders.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_release(std::span<const journal::Row> rows, const View& view) = 0;
  // After the heartbeat was observed. The ledger may be ahead of what is durable: for presence
  // only.
  virtual void on_heartbeat(const core::HeartbeatHeard& heartbeat,
                            const core::Presence& presence) = 0;
};

// A client's stream. Calls must only queue.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // Those of its job (or all), in order, durable. The view is as of these events.
  virtual void on_events(std::span<const EventPtr> events, const View& view) = 0;
  // A heartbeat told of its job.
  virtual void on_reading(const JobId& job, const core::Presence& presence) = 0;
  // An agent came or went.
  virtual void on_presence(const core::Presence& presence) = 0;
};

}  // namespace muster::controller
