// The controller's journal as a disk keeps it: rows that are durable, and a batch that is on its
// way and all there or not at all after a crash. Prunes as the real one does: of an archived job
// only JobArchived stays, and what the real one's LiveRows calls superseded goes.
#pragma once

#include <optional>
#include <vector>

#include "controller/journal/journal.h"
#include "controller/journal/row_table.h"

namespace muster::sim {

class DiskJournal {
 public:
  void begin(std::vector<journal::Row> batch) { in_flight_ = std::move(batch); }
  void commit();
  void drop() { in_flight_.clear(); }
  void lose_last_batch();  // a mutant's disk
  // An older copy is put back: up to `most` rows of the end are gone, also out of the middle of a
  // batch. Not what makes a node known, nor an archived job's last row, behind which its others
  // were moved away. False: there is nothing that may go.
  bool lose_end(std::size_t most);
  // The same with the head file, so that nobody sees it: the index goes back as well. False: there
  // is nothing that may go.
  bool put_back_copy(std::size_t most);
  void accept_unknown_loss();  // as --accept-loss where nothing is seen missing
  // Put back from before an accepted loss of unknown size: the next one's indexes may not reach
  // beyond what agents were told behind that one.
  [[nodiscard]] bool may_be_behind() const { return may_be_behind_; }
  // Indexes that an accepted loss gave up since the last start that is left: they are never given
  // out again. Nothing: unknown.
  [[nodiscard]] std::optional<std::uint64_t> lost() const;
  [[nodiscard]] std::uint64_t unknown_losses() const { return rows_lost() / journal::kRowsUnknown; }
  void archive(const JobId& job);
  void prune();
  [[nodiscard]] JournalIndex last() const { return last_; }
  [[nodiscard]] const std::vector<journal::Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<journal::Row>& in_flight() const { return in_flight_; }

 private:
  [[nodiscard]] std::uint64_t rows_lost() const;
  std::vector<journal::Row> rows_, in_flight_;
  std::size_t last_batch_ = 0;
  JournalIndex last_;
  bool end_lost_ = false;  // since the last start that is left
  bool may_be_behind_ = false;
};

}  // namespace muster::sim
