// The controller's journal as a disk keeps it. ControllerModel owns it, and it survives the
// controller's incarnations. It runs on its history's one thread.
//
// It has rows that are durable, and a batch in flight. After a crash, all of that batch is there,
// or nothing of it. It drops the same rows as the real journal: of an archived job only JobArchived
// stays, and rows that LiveRows calls superseded go.
#pragma once

#include <optional>
#include <vector>

#include "controller/core/journal_end/lost_end.h"
#include "controller/journal/journal.h"
#include "controller/journal/row_table.h"

namespace muster::sim {

class DiskJournal {
 public:
  void begin(std::vector<journal::Row> batch) { in_flight_ = std::move(batch); }
  void commit();
  void drop() { in_flight_.clear(); }
  void lose_last_batch();  // the disk of a mutant
  // An older copy is restored: up to `most` rows of the end are lost, possibly from the middle of a
  // batch. Two kinds of rows stay: those that make a node known, and an archived job's last row,
  // because the job's other rows have been moved away. Returns false if no row may go.
  bool lose_end(std::size_t most);
  // The same with the head file, so that nobody notices the loss: the index goes back as well.
  // Returns false if no row may go.
  bool put_back_copy(std::size_t most);
  // As --accept-loss does when nothing is visibly missing. `generation_seen` is of the mark.
  void accept_unknown_loss(std::uint64_t generation_seen);
  // True after a restore from before an accepted loss. Then agents know a lineage that this journal
  // does not.
  [[nodiscard]] bool may_be_behind() const { return may_be_behind_; }
  // The accepted loss that no row records yet.
  [[nodiscard]] std::optional<core::LostEnd> lost() const;
  void archive(const JobId& job);
  void prune();
  [[nodiscard]] JournalIndex last() const { return last_; }
  [[nodiscard]] const std::vector<journal::Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<journal::Row>& in_flight() const { return in_flight_; }

 private:
  std::vector<journal::Row> rows_, in_flight_;
  std::size_t last_batch_ = 0;
  JournalIndex last_;
  bool end_lost_ = false;         // and no row records it
  std::uint64_t generation_ = 0;  // as the head file keeps it
  bool may_be_behind_ = false;
};

}  // namespace muster::sim
