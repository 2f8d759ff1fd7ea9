// The journal's interface: append batches of events durably, and load them all at a start. The
// daemon owns a SqliteJournal (sqlite_journal.h); tests use a MemoryJournal. One thread at a time
// calls it (in the daemon, the thread "journal" of the Shell), and one more thread may read the
// archive in parallel.
//
// At most one batch is in flight. Nothing here depends on Asio. docs/journal.md describes the
// formats and their reasons.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/core/model/event.h"

namespace muster::journal {

using core::Row;

// What the journal keeps of a finished job: its events, in order, and the few fields that lists
// need.
struct ArchivedJob {
  JobId job;
  std::string name;
  WallTime submitted_at{};
  std::vector<Row> rows;
  // not empty: the stored events cannot be trusted, and `rows` is empty; the text explains why
  std::string damage;
};

class Journal {
 public:
  virtual ~Journal() = default;
  // Passes every row to `each`, verified and in index order; then the journal is ready for
  // append(). Call it once. DataLoss: the text names what is damaged or behind, and how to
  // continue.
  virtual Result<void> load(const std::function<void(const Row&)>& each) = 0;
  // Appends the batch and makes it durable: when it returns, every row survives a power loss.
  // Indexes are consecutive, from last() + 1. Any error is final, and the daemon ends itself. (The
  // ballast handles a full disk before that.)
  virtual Result<void> append(std::span<const Row> batch) = 0;
  [[nodiscard]] virtual JournalIndex last() const = 0;
  // Moves a finished job's rows to the archive, durably. The job's JobArchived event must already
  // be appended. Idempotent.
  virtual Result<void> archive(const JobId& job) = 0;
  // Call both functions after load(), from one thread at a time. This may be another thread than
  // that of the calls above; neither delays the other. Each call sees what was archived before it
  // began. archived() returns at most `most` jobs older than `before` (empty: from the newest), the
  // newest first.
  virtual Result<std::vector<ArchivedJob>> archived(const std::optional<JobId>& before,
                                                    std::size_t most) = 0;
  virtual Result<std::optional<ArchivedJob>> archived_job(const JobId& job) = 0;
};

}  // namespace muster::journal
