#include "tests/sim/disk_journal.h"

#include <algorithm>

#include "controller/core/model/event_fields.h"
#include "controller/journal/codec.h"
#include "controller/journal/live_rows.h"
#include "controller/journal/row_table.h"

namespace muster::sim {

void DiskJournal::commit() {
  if (in_flight_.empty()) return;
  last_batch_ = in_flight_.size();
  last_ = in_flight_.back().index;
  for (journal::Row& row : in_flight_) {
    if (const auto* lost = std::get_if<core::JournalEndLost>(&row.event.body)) {
      end_lost_ = false;
      generation_ = lost->lineage.generation;
      newest_generation_ = std::max(newest_generation_, generation_);
    }
    rows_.push_back(std::move(row));
  }
  in_flight_.clear();
}

void DiskJournal::lose_last_batch() {
  rows_.resize(rows_.size() - std::min(last_batch_, rows_.size()));
  last_ = rows_.empty() ? JournalIndex(0) : rows_.back().index;
  last_batch_ = 0;
}

bool DiskJournal::stays(const journal::Row& row, const Lost& lost) const {
  const core::EventBody& body = row.event.body;
  const auto* registered = std::get_if<core::NodeRegistered>(&body);
  if (registered == nullptr)
    return std::holds_alternative<core::JobArchived>(body) ||
           std::holds_alternative<core::TombstoneDropped>(body);
  const bool first = std::ranges::count_if(rows_, [&](const journal::Row& other) {
                       const auto* one = std::get_if<core::NodeRegistered>(&other.event.body);
                       return one != nullptr && one->node == registered->node;
                     }) == 1;
  return first && !lost.may_be_unknown(registered->node);
}

bool DiskJournal::drop_end(const Lost& lost) {
  const std::size_t before = rows_.size();
  // The first row names the cluster.
  while (before - rows_.size() < lost.most && rows_.size() > 1 && !stays(rows_.back(), lost))
    rows_.pop_back();
  last_batch_ = 0;
  return rows_.size() < before;
}

std::uint64_t DiskJournal::generation_of_rows() const {
  std::uint64_t generation = 0;
  for (const journal::Row& row : rows_) {
    if (const auto* lost = std::get_if<core::JournalEndLost>(&row.event.body))
      generation = lost->lineage.generation;
  }
  return generation;
}

// The next accepted loss gets the generation after the head's.
void DiskJournal::expect_next_lineage() { may_be_behind_ = generation_ + 1 <= newest_generation_; }

bool DiskJournal::lose_end(const Lost& lost) {
  if (!drop_end(lost)) return false;
  end_lost_ = true;
  expect_next_lineage();
  return true;
}

bool DiskJournal::lose_end_behind_head(const Lost& lost) {
  if (!drop_end(lost)) return false;
  end_lost_ = true;
  generation_ = generation_of_rows();
  expect_next_lineage();
  return true;
}

bool DiskJournal::put_back_copy(const Lost& lost) {
  if (!drop_end(lost)) return false;
  last_ = rows_.back().index;
  end_lost_ = false;
  generation_ = generation_of_rows();
  expect_next_lineage();
  return true;
}

void DiskJournal::accept_unknown_loss(std::uint64_t generation_seen) {
  last_ = JournalIndex(last_.value + journal::kRowsUnknown);
  generation_ = std::max(generation_, generation_seen);
  end_lost_ = true;
  expect_next_lineage();
}

std::optional<core::LostEnd> DiskJournal::lost() const {
  if (!end_lost_) return std::nullopt;
  const std::uint64_t rows = last_.value - rows_.back().index.value;
  return core::LostEnd{.rows = rows < journal::kRowsUnknown ? std::optional(rows) : std::nullopt,
                       .generation = generation_};
}

void DiskJournal::archive(const JobId& job) {
  std::erase_if(rows_, [&](const journal::Row& row) {
    const JobId* about = core::job_of(row.event.body);
    return about != nullptr && *about == job &&
           !std::holds_alternative<core::JobArchived>(row.event.body);
  });
  last_batch_ = 0;
}

void DiskJournal::prune() {
  journal::LiveRows live;
  for (const journal::Row& row : rows_) live.add(row.index, row.event);
  const std::vector<JournalIndex> gone = live.superseded();
  std::erase_if(
      rows_, [&](const journal::Row& row) { return std::ranges::binary_search(gone, row.index); });
  last_batch_ = 0;
}

}  // namespace muster::sim
