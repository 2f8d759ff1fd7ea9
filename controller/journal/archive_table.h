// The SQLite table `archive`, which keeps finished jobs. SqliteJournal owns two: one to write, and
// one to read through a second connection; salvage() makes others for a copy. Each table runs on
// the thread that uses its Database.
//
// The table keeps all rows of a job in one blob, under a checksum of its own. A replay needs
// nothing from this table.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "controller/journal/database.h"
#include "controller/journal/journal.h"
#include "controller/journal/row_table.h"

namespace muster::journal {

class ArchiveTable {
 public:
  static Result<ArchiveTable> open(Database& database);
  // Prepares only what list() and find() need.
  static Result<ArchiveTable> open_to_read(Database& database);

  // Adds the rows to the rows that the archive already has of this job. Must run inside a
  // transaction of the caller.
  Result<void> add(const JobId& job, std::span<const RowTable::Stored> rows);
  // Returns at most `most` jobs, the newest first. A job whose blob is damaged has `damage` set and
  // no rows, so that the other jobs can still be shown.
  Result<std::vector<ArchivedJob>> list(const std::optional<JobId>& before, std::size_t most);
  Result<std::optional<ArchivedJob>> find(const JobId& job);
  // Checks the `most` oldest jobs, and deletes those whose last event is older than `before`. Must
  // run inside a transaction of the caller.
  Result<void> drop(WallTime before, std::size_t most);
  // Copies the sound jobs to `to`, and returns how many jobs are lost.
  Result<std::size_t> copy_sound(ArchiveTable& to);

 private:
  Statement put_, list_, find_, all_, oldest_, drop_;
};

}  // namespace muster::journal
