#include "controller/journal/memory_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/assert.h"

namespace muster::journal {

void MemoryDisk::sync() {
  durable_ = rows_.size();
  durable_last_ = last_;
}

void MemoryDisk::lose_power() {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(durable_), rows_.end());
  last_ = durable_last_;
}

Result<void> MemoryJournal::load(const std::function<void(const Row&)>& each) {
  MUSTER_ASSERT(!loaded_, "a journal loaded twice");
  for (const Row& row : disk_->rows_) {
    live_.add(row.index, row.event);
    each(row);
  }
  loaded_ = true;
  tidy();
  return {};
}

Result<void> MemoryJournal::append(std::span<const Row> batch) {
  MUSTER_ASSERT(loaded_, "a journal appended to before it was loaded");
  if (batch.empty()) return {};
  ++disk_->appends_;
  const auto fail_now = std::exchange(disk_->fail_next_append, MemoryDisk::Fail::Never);
  if (fail_now == MemoryDisk::Fail::BeforeEffect)
    return fail(ErrorCode::Io, "appending to the journal in memory: set to fail before the effect");
  for (const Row& row : batch) {
    MUSTER_ASSERT(row.index.value == disk_->last_.value + 1,
                  "a batch whose indexes are not the next ones");
    disk_->rows_.push_back(row);
    disk_->last_ = row.index;
    live_.add(row.index, row.event);
  }
  if (!disk_->lazy) disk_->sync();
  if (fail_now == MemoryDisk::Fail::AfterEffect)
    return fail(ErrorCode::Io, "appending to the journal in memory: set to fail after the effect");
  return {};
}

void MemoryJournal::tidy() {
  std::vector<JournalIndex> gone = live_.superseded();
  for (const JobId& job : std::vector(live_.unmoved().begin(), live_.unmoved().end())) {
    const std::vector<JournalIndex>& moving = live_.of_job(job);
    const MutexLock lock(disk_->archive_mutex_);
    ArchivedJob& to = disk_->archive_[job];
    to.job = job;
    for (const JournalIndex index : moving) {
      const auto row = std::ranges::lower_bound(disk_->rows_, index, {}, &Row::index);
      if (const auto* submitted = std::get_if<core::JobSubmitted>(&row->event.body)) {
        to.name = submitted->spec.name();
        to.submitted_at = row->event.at;
      }
      to.rows.push_back(*row);
    }
    gone.insert(gone.end(), moving.begin(), moving.end());
    live_.moved(job);
  }
  if (gone.empty()) return;
  std::ranges::sort(gone);
  const auto is_gone = [&](const Row& row) { return std::ranges::binary_search(gone, row.index); };
  disk_->durable_ -= static_cast<std::size_t>(std::ranges::count_if(
      disk_->rows_.begin(), disk_->rows_.begin() + static_cast<std::ptrdiff_t>(disk_->durable_),
      is_gone));
  std::erase_if(disk_->rows_, is_gone);
  live_.dropped();
}

Result<void> MemoryJournal::archive(const JobId& job) {
  if (live_.of_job(job).empty()) return {};
  if (!live_.has_archived_record(job)) {
    return fail(ErrorCode::Internal,
                fmt::format("archiving job '{}': its 'archived' record is not in the journal yet",
                            job.value));
  }
  tidy();
  return {};
}

Result<std::vector<ArchivedJob>> MemoryJournal::archived(const std::optional<JobId>& before,
                                                         std::size_t most) {
  const MutexLock lock(disk_->archive_mutex_);
  std::vector<ArchivedJob> jobs;
  auto at = before ? disk_->archive_.lower_bound(*before) : disk_->archive_.end();
  while (at != disk_->archive_.begin() && jobs.size() < most) jobs.push_back((--at)->second);
  return jobs;
}

Result<std::optional<ArchivedJob>> MemoryJournal::archived_job(const JobId& job) {
  const MutexLock lock(disk_->archive_mutex_);
  const auto found = disk_->archive_.find(job);
  if (found == disk_->archive_.end()) return std::optional<ArchivedJob>();
  return std::optional(found->second);
}

}  // namespace muster::journal
