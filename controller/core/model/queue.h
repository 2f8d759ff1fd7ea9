// The queue of jobs: first in, first out; a job that returns goes to the front. FittingJobs is
// created for one walk by the function that walks. Pure.
//
// The ledger has the queue twice: as a whole, and in lines of jobs with equal requirements
// (requirements_of). Whether the registered nodes could ever hold a job depends on these alone. So
// a thousand jobs that wait for new machines cost one check, and delay no other job. A job that
// waits for others (predecessors.h) has a queue position, but is in no line.
#pragma once

#include <cstdint>

#include "controller/core/model/ledger.h"

namespace muster::core {

enum class QueueEnd : std::uint8_t { Front, Back };

// For apply() alone.
void join_queue(Ledger& ledger, JobRecord& job, QueueEnd end);
void leave_queue(Ledger& ledger, const JobRecord& job);
// For a queued job that waits for no other job any more.
void join_line(Ledger& ledger, const JobRecord& job);

}  // namespace muster::core
