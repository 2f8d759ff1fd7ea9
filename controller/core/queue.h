// The queue of jobs: first in, first out; a job that returns goes to the front. FittingJobs is
// created for one walk by the function that walks. Pure.
//
// The ledger has the queue twice: as a whole, and in lines of jobs with equal requirements
// (requirements_of). Whether the registered nodes could ever hold a job depends on these alone. So
// a thousand jobs that wait for new machines cost one check, and delay no other job. A job that
// waits for others (predecessors.h) has a queue position, but is in no line.
#pragma once

#include <cstdint>
#include <map>

#include "controller/core/core.h"

namespace muster::core {

enum class QueueEnd : std::uint8_t { Front, Back };

// For apply() alone.
void join_queue(Ledger& ledger, JobRecord& job, QueueEnd end);
void leave_queue(Ledger& ledger, const JobRecord& job);
// For a queued job that waits for no other job any more.
void join_line(Ledger& ledger, const JobRecord& job);

// Walks over the queued jobs that the registered nodes could hold, in order. The ledger must not
// change during the walk.
class FittingJobs {
 public:
  // Begins behind place `behind`. Counts `checks` down (placing.h); the walk ends when none are
  // left.
  FittingJobs(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
              std::int64_t behind = INT64_MIN, std::size_t* checks = nullptr);
  const JobRecord* next();  // nullptr: no more jobs, or no checks left
  [[nodiscard]] bool ran_out() const {
    return checks_ != nullptr && *checks_ == 0 && !heads_.empty();
  }
  // The place up to which jobs were returned, or could not be held.
  [[nodiscard]] std::int64_t reached() const { return reached_; }

 private:
  struct Head {
    const std::map<std::int64_t, JobId>* line;
    std::map<std::int64_t, JobId>::const_iterator at;
    bool fits;  // checked: the nodes could hold the jobs of this line
  };
  const Ledger& ledger_;
  const Presence& presence_;
  Now now_;
  const Limits& limits_;
  std::int64_t reached_;
  std::size_t* checks_;
  // The lines, by the place of their first job that has not been visited.
  std::map<std::int64_t, Head> heads_;
};

}  // namespace muster::core
