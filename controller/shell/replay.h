// Start-up: the journal's rows, folded. A sound record that makes no sense (it was written by a
// broken build, or by nobody) is left out and sets its one job aside, reported; the rest starts.
// What makes sense of that job is folded all the same: it keeps its name, request id and devices,
// its processes may still be running, and the shell can stop it like any other.
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
  // Called after each row that was folded, with the ledger as it is then.
  using Each = std::function<void(const journal::Row&, const core::Ledger&)>;
  explicit Replay(Each each = {}) : each_(std::move(each)) {}

  void row(const journal::Row& row);

  [[nodiscard]] core::Ledger& ledger() { return ledger_; }
  // why
  [[nodiscard]] const std::map<JobId, std::string>& unreadable() const { return unreadable_; }

 private:
  Each each_;
  core::Ledger ledger_;
  std::map<JobId, std::string> unreadable_;
};

// Why this event cannot follow what the ledger holds; nothing: it can.
std::optional<std::string> nonsense(const core::Ledger& ledger, const core::EventBody& body);

// Rows of one archived job as the record it was.
std::optional<core::JobRecord> refold(const journal::ArchivedJob& archived);

}  // namespace muster::controller
