// The journal: append batches of events durably, load them all at start. An interface with real
// implementations (sqlite_journal.h). One thread at a time calls it (the journal's own thread in
// the daemon; one batch in flight), and beside it one that reads the archive; nothing here knows
// Asio. Formats and their reasons: docs/journal.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/core/event.h"

namespace muster::journal {

struct Row {
  JournalIndex index;
  core::Event event;
};

// What is kept of a finished job: its events, in order, and the few fields that lists need.
struct ArchivedJob {
  JobId job;
  std::string name;
  WallTime submitted_at{};
  std::vector<Row> rows;
  // not empty: the stored events cannot be trusted, and rows is empty; the text says why
  std::string damage;
};

class Journal {
 public:
  virtual ~Journal() = default;
  // Every row, in index order, each verified; then the journal is ready for append. Called once.
  // DataLoss: the text says what is damaged or behind, and how to go on.
  virtual Result<void> load(const std::function<void(const Row&)>& each) = 0;
  // Appends the batch and makes it durable: on return every row survives power loss. Indexes are
  // consecutive, from last() + 1. Any error is final: the daemon ends itself (a full disk is met
  // earlier, by the ballast).
  virtual Result<void> append(std::span<const Row> batch) = 0;
  [[nodiscard]] virtual JournalIndex last() const = 0;
  // Moves a finished job's rows to the archive, durably. Its JobArchived event is already appended.
  // Idempotent.
  virtual Result<void> archive(const JobId& job) = 0;
  // Both after load(), and from one thread at a time, which may be another than that of the calls
  // above: neither holds up the other. Each sees what was archived before it began. Newest first,
  // at most `most`, older than `before` (empty: from the newest).
  virtual Result<std::vector<ArchivedJob>> archived(const std::optional<JobId>& before,
                                                    std::size_t most) = 0;
  virtual Result<std::optional<ArchivedJob>> archived_job(const JobId& job) = 0;
};

}  // namespace muster::journal
