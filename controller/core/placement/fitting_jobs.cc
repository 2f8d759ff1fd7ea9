#include "controller/core/placement/fitting_jobs.h"

#include "controller/core/placement/placing.h"

namespace muster::core {

FittingJobs::FittingJobs(const Ledger& ledger, const Presence& presence, Now now,
                         const Limits& limits, std::int64_t behind, std::size_t* checks)
    : ledger_(ledger),
      presence_(presence),
      now_(now),
      limits_(limits),
      reached_(behind),
      checks_(checks) {
  for (const auto& [resources, line] : ledger.indexes.queue_lines) {
    const auto first = line.upper_bound(behind);
    if (first != line.end())
      heads_.emplace(first->first, Head{.line = &line, .at = first, .fits = false});
  }
}

const JobRecord* FittingJobs::next() {
  while (!heads_.empty() && !ran_out()) {
    reached_ = heads_.begin()->first;
    Head head = heads_.begin()->second;
    heads_.erase(heads_.begin());
    const JobRecord& job = ledger_.jobs.at(head.at->second);
    // The other jobs of its line do not fit either.
    if (!head.fits && never_fits(ledger_, presence_, job, now_, limits_, checks_)) continue;
    head.fits = true;
    if (++head.at != head.line->end()) heads_.emplace(head.at->first, head);
    return &job;
  }
  return nullptr;
}

}  // namespace muster::core
