// The queue of jobs: first in, first out, and one that comes back goes to the front. It stands in
// the ledger twice: as a whole, and in lines of jobs that demand the same of nodes
// (requirements_of).
// Whether the registered nodes could ever hold a job depends on that alone, so a thousand jobs that
// wait for machines to come cost one question, and hold nobody up. A job that waits for others
// (predecessors.h) has its place, and stands in no line. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "controller/core/core.h"

namespace muster::core {

enum class QueueEnd : std::uint8_t { Front, Back };

// For apply() alone.
void join_queue(Ledger& ledger, JobRecord& job, QueueEnd end);
void leave_queue(Ledger& ledger, const JobRecord& job);
// of a queued job, when it waits for no other any more
void join_line(Ledger& ledger, const JobRecord& job);

// Walks over the queued jobs that the registered nodes could hold, in order. The ledger must not
// change meanwhile.
class FittingJobs {
 public:
  // Begins behind place `behind`. `checks` are counted down (placing.h), and when there are none
  // left the walk ends.
  FittingJobs(const Ledger& ledger, const Presence& presence, Now now, const Limits& limits,
              std::int64_t behind = INT64_MIN, std::size_t* checks = nullptr);
  const JobRecord* next();  // nullptr: no more, or no looks
  [[nodiscard]] bool ran_out() const {
    return checks_ != nullptr && *checks_ == 0 && !heads_.empty();
  }
  // the place up to which jobs were given out, or could not be held
  [[nodiscard]] std::int64_t reached() const { return reached_; }

 private:
  struct Head {
    const std::map<std::int64_t, JobId>* line;
    std::map<std::int64_t, JobId>::const_iterator at;
    bool fits;  // asked, and they could
  };
  const Ledger& ledger_;
  const Presence& presence_;
  Now now_;
  const Limits& limits_;
  std::int64_t reached_;
  std::size_t* checks_;
  // of the lines, by the place of their first job that is still to come
  std::map<std::int64_t, Head> heads_;
};

}  // namespace muster::core
