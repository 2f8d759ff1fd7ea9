// Which rows of a journal are still needed by a replay: shared by every implementation, so that
// they agree on what may go. A value, fed with every event in index order.
//
// What goes, and why a replay comes to the same ledger without it:
//   - every row of a job that has a JobArchived, but that one row: it carries the tombstone; the
//     others live in the archive;
//   - JobArchived and TombstoneDropped of a job whose tombstone was dropped: together they say
//     nothing;
//   - of the ControllerStarted rows all but the first, the last, and the two around each accepted
//     loss: what these say of the jobs, no other row says;
//   - of each node's NodeRegistered rows all but the first and the last;
//   - NodeDeclaredDead of a node that has registered since, or was declared dead again.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "controller/core/event.h"

namespace muster::journal {

class LiveRows {
 public:
  void add(JournalIndex index, const core::Event& event);

  // The job's rows but JobArchived and TombstoneDropped, in order; empty: none.
  [[nodiscard]] const std::vector<JournalIndex>& of_job(const JobId& job) const;
  [[nodiscard]] bool has_archived_record(const JobId& job) const { return archived_.contains(job); }
  // Jobs whose JobArchived is there, and other rows, too: the move was not done, or was lost.
  [[nodiscard]] const std::set<JobId>& unmoved() const { return unmoved_; }
  // Rows that say nothing any more, ascending.
  [[nodiscard]] std::vector<JournalIndex> superseded() const;

  void moved(const JobId& job);  // of_job() is gone
  void dropped();                // superseded() are gone

 private:
  struct Pair {
    JournalIndex first, last;
  };
  void only_ends_matter(Pair& pair, JournalIndex index);

  std::unordered_map<JobId, std::vector<JournalIndex>> jobs_;
  std::unordered_map<JobId, JournalIndex> archived_;  // JobArchived, by job
  std::set<JobId> unmoved_;
  std::map<NodeName, Pair> nodes_;
  std::map<NodeName, JournalIndex> dead_;
  Pair starts_;
  Epoch epoch_;  // of the latest start
  std::vector<JournalIndex> superseded_;
};

}  // namespace muster::journal
