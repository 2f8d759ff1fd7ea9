// Reads finished jobs that have left the ledger back from the archive. Pure functions over the
// shell: they own nothing. The reads run on the archive's thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "controller/api/edge.h"
#include "controller/shell/replay.h"

namespace muster::controller {

struct ArchivedRecord {
  core::JobRecord job;
  std::vector<EventPtr> events;  // of the job, in order; empty if not requested
};
// `done` is called on the archive's thread, with the record or NotFound.
void read_archived(Shell& shell, const JobId& id, bool events,
                   std::move_only_function<void(Result<ArchivedRecord>)> done);

}  // namespace muster::controller
