// Replay folds the journal's rows at a start. Shell::start(), the dump and refold() create one for
// each replay. It runs on its caller's thread.
//
// A sound record may make no sense, because a broken build wrote it. Such a record is skipped, its
// job is reported as unreadable, and all other jobs start. The sound records of that job are folded
// all the same. So it keeps its name, request id and devices. Its processes may still be running,
// and the shell can stop it like any other job.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "controller/core/core.h"
#include "controller/journal/journal.h"

namespace muster::controller {

class Replay {
 public:
  // Called after each folded row, with the ledger at that moment.
  using Each = std::function<void(const journal::Row&, const core::Ledger&)>;
  explicit Replay(Each each = {}) : each_(std::move(each)) {}

  void row(const journal::Row& row);

  [[nodiscard]] core::Ledger& ledger() { return ledger_; }
  // The unreadable jobs, and why.
  [[nodiscard]] const std::map<JobId, std::string>& unreadable() const { return unreadable_; }

 private:
  Each each_;
  core::Ledger ledger_;
  std::map<JobId, std::string> unreadable_;
};

// Why this event cannot follow the state of the ledger. Nothing: it can.
std::optional<std::string> nonsense(const core::Ledger& ledger, const core::EventBody& body);

// Folds the rows of one archived job into its record. Nothing: they make no record.
std::optional<core::JobRecord> refold(const journal::ArchivedJob& archived);

}  // namespace muster::controller
