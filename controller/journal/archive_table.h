// The table `archive`: finished jobs, each with its rows in one blob under a checksum of its own.
// Nothing here is needed for a replay.
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
  // For list() and find() alone.
  static Result<ArchiveTable> open_to_read(Database& database);

  // Adds the rows to what is there of the job. Inside a transaction of the caller's.
  Result<void> add(const JobId& job, std::span<const RowTable::Stored> rows);
  // Newest first. A job whose blob is damaged has `damage` set and no rows: the others can still be
  // shown.
  Result<std::vector<ArchivedJob>> list(const std::optional<JobId>& before, std::size_t most);
  Result<std::optional<ArchivedJob>> find(const JobId& job);
  // Of the `most` oldest those whose last event was before `before`. Inside a transaction of the
  // caller's.
  Result<void> drop(WallTime before, std::size_t most);
  // Copies what is sound; returns how many were not.
  Result<std::size_t> copy_sound(ArchiveTable& to);

 private:
  Statement put_, list_, find_, all_, oldest_, drop_;
};

}  // namespace muster::journal
