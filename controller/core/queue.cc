#include "controller/core/queue.h"

#include "common/base/assert.h"
#include "controller/core/placing.h"

namespace muster::core {

void join_queue(Ledger& ledger, JobRecord& job, QueueEnd end) {
  if (ledger.queue.empty()) {
    job.queue_place = 0;
  } else if (end == QueueEnd::Front) {
    job.queue_place = ledger.queue.begin()->first - 1;
  } else {
    job.queue_place = ledger.queue.rbegin()->first + 1;
  }
  ledger.queue.emplace(job.queue_place, job.id);
  if (job.waits_for.empty()) join_line(ledger, job);
}

void join_line(Ledger& ledger, const JobRecord& job) {
  ledger.queue_lines[requirements_of(job.spec)].emplace(job.queue_place, job.id);
}

void leave_queue(Ledger& ledger, const JobRecord& job) {
  const std::size_t left = ledger.queue.erase(job.queue_place);
  MUSTER_ASSERT(left == 1, "a queued job is not in the queue");
  if (!job.waits_for.empty()) return;
  const auto line = ledger.queue_lines.find(requirements_of(job.spec));
  MUSTER_ASSERT(line != ledger.queue_lines.end(), "a queued job is in no line of the queue");
  line->second.erase(job.queue_place);
  if (line->second.empty()) ledger.queue_lines.erase(line);
}

FittingJobs::FittingJobs(const Ledger& ledger, const Presence& presence, Now now,
                         const Limits& limits, std::int64_t behind, std::size_t* checks)
    : ledger_(ledger),
      presence_(presence),
      now_(now),
      limits_(limits),
      reached_(behind),
      checks_(checks) {
  for (const auto& [resources, line] : ledger.queue_lines) {
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
