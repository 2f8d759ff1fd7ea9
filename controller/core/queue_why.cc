#include "controller/core/queue_why.h"

#include <fmt/format.h>

#include <utility>

#include "controller/core/chains/predecessors.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/placement/fitting_jobs.h"
#include "controller/core/placement/place_why.h"
#include "controller/core/recovery/next_attempt.h"

namespace muster::core {
namespace {

constexpr int kAheadChecksMost = 4;  // to find the job that blocks the others
constexpr int kOtherChecksMost = 4;  // of jobs that the registered nodes could not hold

}  // namespace

std::map<JobId, std::string> queue_why(const Ledger& ledger, const Presence& presence,
                                       const std::vector<JobId>& jobs, Now now,
                                       const Limits& limits) {
  std::map<JobId, std::string> reasons;
  std::map<JobId, const JobRecord*> wanted;
  for (const JobId& id : jobs) {
    const JobRecord& job = ledger.jobs.at(id);
    if (!job.waits_for.empty())
      reasons[id] = waits_for_text(ledger, presence, job.waits_for).front();
    else if (unheard_since_start(ledger, presence, job, now, limits))
      reasons[id] = "the controller has just started and waits for a word from every node";
    else
      wanted[id] = &job;
  }
  if (wanted.empty()) return reasons;
  const JobRecord* next = nullptr;
  int checks = 0;
  std::size_t ahead = 0;
  FittingJobs queue(ledger, presence, now, limits);
  for (const JobRecord* job = queue.next(); job != nullptr; job = queue.next(), ++ahead) {
    std::string text;
    if (next != nullptr) {
      text = fmt::format("behind '{}' in the queue, {} ahead", next->spec.name(), ahead);
    } else if (const auto end = backoff_end(*job, presence, now, limits)) {
      text = backoff_text(*job, presence, now, *end);  // the jobs behind it do not wait for it
    } else if (++checks > kAheadChecksMost) {
      text = fmt::format("{} ahead in the queue", ahead);
    } else {
      PlaceResult placed = place(ledger, presence, *job, now, limits);
      if (!placed.retry_at) next = job;
      text = placed.why.empty() ? "is about to be placed" : std::move(placed.why);
    }
    if (wanted.erase(job->id) > 0) reasons[job->id] = std::move(text);
  }
  checks = 0;
  for (const auto& [id, job] : wanted) {
    std::string why =
        ++checks <= kOtherChecksMost ? place(ledger, presence, *job, now, limits).why : "";
    reasons[id] = why.empty() ? "waits for other nodes" : std::move(why);
  }
  return reasons;
}

}  // namespace muster::core
