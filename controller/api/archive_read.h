// Finished jobs that have left the ledger, read back from the archive on its own thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "controller/api/edge.h"
#include "controller/shell/replay.h"

namespace muster::controller {

struct ArchivedRecord {
  core::JobRecord job;
  std::vector<EventPtr> events;  // of the job, in order; empty when not asked for
};
// `done` is called on the archive's thread: the record, or NotFound.
void read_archived(Shell& shell, const JobId& id, bool events,
                   std::move_only_function<void(Result<ArchivedRecord>)> done);

}  // namespace muster::controller
