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

bool DiskJournal::lose_end(std::size_t most) {
  const std::size_t before = rows_.size();
  while (most-- > 0 && rows_.size() > 1) {
    const core::EventBody& body = rows_.back().event.body;
    const bool stays = std::holds_alternative<core::NodeRegistered>(body) ||
                       std::holds_alternative<core::JobArchived>(body) ||
                       std::holds_alternative<core::TombstoneDropped>(body);
    if (stays) break;
    rows_.pop_back();
  }
  last_batch_ = 0;
  end_lost_ = end_lost_ || rows_.size() < before;
  return rows_.size() < before;
}

bool DiskJournal::put_back_copy(std::size_t most) {
  if (!lose_end(most)) return false;
  last_ = rows_.back().index;
  end_lost_ = false;
  std::uint64_t left = 0;
  for (const journal::Row& row : rows_) {
    if (const auto* lost = std::get_if<core::JournalEndLost>(&row.event.body))
      left = lost->lineage.generation;
  }
  may_be_behind_ = may_be_behind_ || left < generation_;
  generation_ = left;
  return true;
}

void DiskJournal::accept_unknown_loss(std::uint64_t generation_seen) {
  last_ = JournalIndex(last_.value + journal::kRowsUnknown);
  generation_ = std::max(generation_, generation_seen);
  end_lost_ = true;
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
