// The controller's journal as a disk keeps it. ControllerModel owns it, and it survives the
// controller's incarnations. It runs on its history's one thread.
//
// It has rows that are durable, and a batch in flight. After a crash, all of that batch is there,
// or nothing of it. It drops the same rows as the real journal: of an archived job only JobArchived
// stays, and rows that LiveRows calls superseded go.
#pragma once

#include <functional>
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
  // How much of the end is lost, possibly from the middle of a batch: up to `most` rows.
  //
  // JobArchived and TombstoneDropped stay, and all rows before them. The job's other rows are in
  // the archive. In the real journal the archive is a table of the same file, so a copy with fewer
  // rows has more of them. This one has no archive to get them from.
  struct Lost {
    std::size_t most = 0;
    // Whether the journal may forget that there is this node. The first registration of any other
    // node stays. Reboots and deaths may always go.
    std::function<bool(const NodeName&)> may_be_unknown;
  };
  // Each of these returns false if no row may go.
  //
  // An older database is restored, and the newest head file shows the loss.
  bool lose_end(const Lost& lost);
  // A row is damaged, and a power cut left a head file that is older than that row. The indexes of
  // the rows behind it can be read, but the head's generation may be too low.
  bool lose_end_behind_head(const Lost& lost);
  // An older database is restored with its head file, so that nobody notices the loss: the index
  // goes back as well.
  bool put_back_copy(const Lost& lost);
  // As --accept-loss does when nothing is visibly missing. `generation_seen` is of the mark.
  void accept_unknown_loss(std::uint64_t generation_seen);
  // True if the lineage of the last accepted loss has a generation that existed before: this
  // journal goes on from before an earlier loss. Then agents know a lineage that it does not.
  [[nodiscard]] bool may_be_behind() const { return may_be_behind_; }
  // The accepted loss that no row records yet.
  [[nodiscard]] std::optional<core::LostEnd> lost() const;
  void archive(const JobId& job);
  void prune();
  [[nodiscard]] JournalIndex last() const { return last_; }
  [[nodiscard]] const std::vector<journal::Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<journal::Row>& in_flight() const { return in_flight_; }

 private:
  bool drop_end(const Lost& lost);
  [[nodiscard]] bool stays(const journal::Row& row, const Lost& lost) const;
  [[nodiscard]] std::uint64_t generation_of_rows() const;
  void expect_next_lineage();

  std::vector<journal::Row> rows_, in_flight_;
  std::size_t last_batch_ = 0;
  JournalIndex last_;
  bool end_lost_ = false;                // and no row records it
  std::uint64_t generation_ = 0;         // as the head file keeps it
  std::uint64_t newest_generation_ = 0;  // that was ever durable
  bool may_be_behind_ = false;
};

}  // namespace muster::sim
