// The controller's journal as a disk keeps it: rows that are durable, and a batch that is on its way and all there or not at all after a crash. Prunes
// as the real one does: of an archived job only JobArchived stays; of each node's registrations, and of the controller's starts, the first and the last.
#pragma once

#include <vector>

#include "controller/journal/journal.h"

namespace muster::sim {

class DiskJournal {
 public:
  void begin(std::vector<journal::Row> batch) { in_flight_ = std::move(batch); }
  void commit();
  void drop() { in_flight_.clear(); }
  void lose_last_batch();  // a mutant's disk
  void archive(const JobId& job);
  void prune();
  [[nodiscard]] JournalIndex last() const { return last_; }
  [[nodiscard]] const std::vector<journal::Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<journal::Row>& in_flight() const { return in_flight_; }

 private:
  std::vector<journal::Row> rows_, in_flight_;
  std::size_t last_batch_ = 0;
  JournalIndex last_;
};

}  // namespace muster::sim
