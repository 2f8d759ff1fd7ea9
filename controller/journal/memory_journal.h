// The journal for tests: it follows the same rules (live_rows.h), but in memory. A test creates it,
// together with a MemoryDisk that outlives the journals opened on it, as a disk outlives processes.
// The threads are those of journal.h.
//
// A MemoryDisk can fail an append before or after the effect. With `lazy` it forgets rows that
// append() has acknowledged; a test uses this to show that such a loss is noticed.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "controller/journal/journal.h"
#include "controller/journal/live_rows.h"

namespace muster::journal {

class MemoryDisk {
 public:
  enum class Fail {
    Never,
    BeforeEffect,  // the next append fails, and nothing of it is stored
    AfterEffect,   // The next append fails, and all of it is stored: the caller cannot know which.
  };
  Fail fail_next_append = Fail::Never;
  bool lazy = false;  // a mutant: append() returns before the sync

  void sync();        // pending rows become durable
  void lose_power();  // pending rows are lost
  [[nodiscard]] std::size_t appends() const { return appends_; }

 private:
  friend class MemoryJournal;
  std::vector<Row> rows_;    // live rows, ascending
  std::size_t durable_ = 0;  // of rows_
  JournalIndex last_, durable_last_;
  Mutex archive_mutex_;
  std::map<JobId, ArchivedJob> archive_ MUSTER_GUARDED_BY(archive_mutex_);
  std::size_t appends_ = 0;
};

class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {}

  Result<void> load(const std::function<void(const Row&)>& each) override;
  Result<void> append(std::span<const Row> batch) override;
  [[nodiscard]] JournalIndex last() const override { return disk_->last_; }
  Result<void> archive(const JobId& job) override;
  Result<std::vector<ArchivedJob>> archived(const std::optional<JobId>& before,
                                            std::size_t most) override;
  Result<std::optional<ArchivedJob>> archived_job(const JobId& job) override;

 private:
  void tidy();

  std::shared_ptr<MemoryDisk> disk_;
  LiveRows live_;
  bool loaded_ = false;
};

}  // namespace muster::journal
