#include "controller/core/model/queue.h"

#include "common/base/assert.h"
#include "controller/core/model/requirements.h"

namespace muster::core {

void join_queue(Ledger& ledger, JobRecord& job, QueueEnd end) {
  if (ledger.indexes.queue.empty()) {
    job.queue_place = 0;
  } else if (end == QueueEnd::Front) {
    job.queue_place = ledger.indexes.queue.begin()->first - 1;
  } else {
    job.queue_place = ledger.indexes.queue.rbegin()->first + 1;
  }
  ledger.indexes.queue.emplace(job.queue_place, job.id);
  if (job.waits_for.empty()) join_line(ledger, job);
}

void join_line(Ledger& ledger, const JobRecord& job) {
  ledger.indexes.queue_lines[requirements_of(job.spec, job.resolved)].emplace(job.queue_place,
                                                                              job.id);
}

void leave_queue(Ledger& ledger, const JobRecord& job) {
  const std::size_t left = ledger.indexes.queue.erase(job.queue_place);
  MUSTER_ASSERT(left == 1, "a queued job is not in the queue");
  if (!job.waits_for.empty()) return;
  const auto line = ledger.indexes.queue_lines.find(requirements_of(job.spec, job.resolved));
  MUSTER_ASSERT(line != ledger.indexes.queue_lines.end(),
                "a queued job is in no line of the queue");
  line->second.erase(job.queue_place);
  if (line->second.empty()) ledger.indexes.queue_lines.erase(line);
}

}  // namespace muster::core
