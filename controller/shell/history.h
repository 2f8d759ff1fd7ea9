// History keeps public events in memory for watchers: all events of each job in the ledger, and the
// latest events of all jobs (the tail). The Shell owns it. Only the shell's strand uses it; the
// events themselves are immutable and shared.
//
// Only durable events are added. of_job() is complete for a job in the ledger; the API reads an
// archived job back from the archive. after() is complete or returns nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "muster/v1/event.pb.h"

namespace muster::controller {

using EventPtr = std::shared_ptr<const v1::Event>;

class History {
 public:
  static constexpr std::size_t kTailMax = 100'000;
  explicit History(std::size_t tail_max = kTailMax) : tail_max_(tail_max) {}

  void add(EventPtr event);
  // The job has left the ledger: its own list is removed; the tail keeps its events.
  void forget(const JobId& job);
  // Rows up to this index were not in the journal when it was loaded, because they were archived or
  // superseded. So the tail may have holes below.
  void missing_to(JournalIndex index);

  // All kept events with a greater index; 0: all that are kept. Nothing: some of them are gone;
  // oldest() has the first index that works.
  [[nodiscard]] std::optional<std::vector<EventPtr>> after(JournalIndex index) const;
  [[nodiscard]] std::vector<EventPtr> of_job(const JobId& job, JournalIndex after) const;
  // The lowest index from which after() answers.
  [[nodiscard]] JournalIndex oldest() const { return dropped_; }

 private:
  std::size_t tail_max_;
  std::deque<EventPtr> tail_;
  JournalIndex dropped_;  // events with this index or a lower one may be missing from the tail
  std::unordered_map<JobId, std::vector<EventPtr>> jobs_;
};

}  // namespace muster::controller
