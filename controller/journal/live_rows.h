// Tracks which rows of a journal a replay still needs. Every implementation of the journal uses it,
// so that they agree on the rows that may go. Plain value, to which the owner passes every event in
// index order.
//
// These rows go; without them, a replay produces the same ledger:
// - Of a job that has a JobArchived, every row except that one. JobArchived carries the tombstone;
//   the other rows are in the archive.
// - JobArchived and TombstoneDropped of a job whose tombstone was dropped: together they have no
//   effect.
// - Of the ControllerStarted rows, all except the first and the last.
// - Of each node's NodeRegistered rows, all except the first and the last.
// - NodeDeclaredDead of a node that has registered since.
// - Of each node's NodeDrained rows, all except the last; with a NodeUndrained, all of them and it.
// - Of each node's NodeLabelled rows, all except the last.
// - NodeRemoved, and all rows above of that node before it: together they have no effect. After a
//   NodeRenamed the rows of the old name are rows of the new one, and so is the NodeRenamed.
// - NodeDeclaredDead of a node that was renamed since.
// - Of each secret's SecretSet rows, all except the last; with a SecretRemoved, all of them and it.
//   The same of stores.
//
// Each JournalEndLost stays: what it means for the jobs is in no other row.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "controller/core/model/event.h"

namespace muster::journal {

class LiveRows {
 public:
  void add(JournalIndex index, const core::Event& event);

  // The job's rows except JobArchived and TombstoneDropped, in order; empty: there are none.
  [[nodiscard]] const std::vector<JournalIndex>& of_job(const JobId& job) const;
  [[nodiscard]] bool has_archived_record(const JobId& job) const { return archived_.contains(job); }
  // Jobs that have a JobArchived and also other rows: the move to the archive was not done, or was
  // lost.
  [[nodiscard]] const std::set<JobId>& unmoved() const { return unmoved_; }
  // Rows that have no effect any more, ascending.
  [[nodiscard]] std::vector<JournalIndex> superseded() const;

  void moved(const JobId& job);  // the rows of of_job() are gone
  void dropped();                // the rows of superseded() are gone

 private:
  struct Pair {
    JournalIndex first, last;
  };
  void only_ends_matter(Pair& pair, JournalIndex index);
  void only_last_matters(std::map<NodeName, JournalIndex>& rows, const NodeName& node,
                         JournalIndex index);
  void remove_node(const NodeName& node, JournalIndex index);
  void rename_node(const NodeName& node, const NodeName& new_name, JournalIndex index);

  std::unordered_map<JobId, std::vector<JournalIndex>> jobs_;
  std::unordered_map<JobId, JournalIndex> archived_;  // index of JobArchived, by job
  std::set<JobId> unmoved_;
  std::map<NodeName, Pair> nodes_;
  std::map<NodeName, JournalIndex> dead_, drained_, labelled_;
  std::map<NodeName, std::vector<JournalIndex>> renamed_;  // by the newest name
  std::map<core::OwnedName, JournalIndex> secrets_, stores_;
  Pair starts_;
  std::vector<JournalIndex> superseded_;
};

}  // namespace muster::journal
