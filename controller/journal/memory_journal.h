// The journal for tests and the simulator: the same rules (live_rows.h), in memory. A MemoryDisk
// outlives the journals opened on it, as a disk outlives processes; it remembers, can be told to
// fail before or after the effect, and, told to sync lazily, to forget what was acknowledged (for
// the test that shows this is noticed). Threads as journal.h says.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "controller/journal/journal.h"
#include "controller/journal/live_rows.h"

namespace muster::journal {

class MemoryDisk {
 public:
  enum class Fail {
    Never,
    BeforeEffect,  // the next append fails and nothing of it is there
    AfterEffect,   // the next append fails, and everything of it is there: the ambiguous one
  };
  Fail fail_next_append = Fail::Never;
  bool lazy = false;  // a mutant: append returns before the sync

  void sync();        // what is pending becomes durable
  void lose_power();  // what is pending is gone
  [[nodiscard]] std::size_t appends() const { return appends_; }

 private:
  friend class MemoryJournal;
  std::vector<Row> rows_;    // live ones, ascending
  std::size_t durable_ = 0;  // of rows_
  JournalIndex last_, durable_last_;
  std::mutex archive_mutex_;
  std::map<JobId, ArchivedJob> archive_;
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
