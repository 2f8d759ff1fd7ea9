// The walk of one placement round over the queue. Pure. propose() makes one a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

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
  // The place up to which jobs were returned, or did not fit on the nodes.
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
