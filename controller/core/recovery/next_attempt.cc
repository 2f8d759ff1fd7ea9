#include "controller/core/recovery/next_attempt.h"

#include <algorithm>

#include "controller/core/model/spec_view.h"
#include "controller/core/recovery/pause.h"

namespace muster::core {

AttemptNo next_attempt(const JobRecord& job, const Presence& presence) {
  std::uint32_t last = job.attempts.empty() ? 0 : job.attempts.back().number.value;
  last += job.attempts_lost;
  if (const auto reported = presence.numbers_reported.find(job.id);
      reported != presence.numbers_reported.end())
    last = std::max(last, reported->second.value);
  return AttemptNo(last + 1);
}

std::optional<BootTime> backoff_end(const JobRecord& job, const Presence& presence, Now now,
                                    const Limits& limits) {
  const Duration backoff = restart_backoff(job.spec);
  const AttemptRecord* last = job.current();
  if (backoff <= Duration::zero() || last == nullptr || !last->charged || !last->ended_at)
    return std::nullopt;
  const Duration wait =
      doubled_pause(backoff, job.attempts_without_progress, std::max(backoff, limits.backoff_max));
  // The wall clock may jump. It counts only for what an earlier controller ended.
  const auto ended = presence.queued_again_at.find(job.id);
  if (ended == presence.queued_again_at.end()) return pause_end(*last->ended_at, wait, now);
  const BootTime end = ended->second + wait;
  return now.boot < end ? std::optional(end) : std::nullopt;
}

}  // namespace muster::core
