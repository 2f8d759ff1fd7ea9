// Public events in memory, for watchers: every event of each job that is still in the ledger, and a
// tail of the latest events of everything. Only durable events are added. Owned by the shell's
// strand; the events themselves are immutable and shared.
//
// Promises: of_job() is whole for a job in the ledger (an archived one is read back from the
// archive by the API). after() is whole or nothing.
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
  // The job has left the ledger: its own list goes; the tail keeps what it has.
  void forget(const JobId& job);
  // Rows up to here were not in the journal any more when it was loaded (archived): the tail may
  // have holes below.
  void missing_to(JournalIndex index);

  // All kept events with a greater index; from 0: from the beginning of what is kept. Nothing: some
  // of them are gone; oldest() says from where.
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
