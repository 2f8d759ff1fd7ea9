// schedule.after of a submission: what people type there becomes ids, by the ledger, and by the archive for jobs that left that long ago.
#pragma once

#include <functional>
#include <map>

#include "controller/api/edge.h"
#include "muster/v1/spec.pb.h"

namespace muster::controller {

struct ResolvedAfter {
  v1::JobSpec spec;                             // with ids
  std::map<JobId, core::ArchivedEnd> archived;  // of those that are not in the ledger's jobs: how they ended
};

// Strand only. `done` is called once: at once, or on the journal's thread. NotFound names jobs that there are, Conflict what an ambiguous beginning may mean,
// InvalidArgument a job that is named twice; how they stand is decide()'s matter.
void resolve_after(Edge& edge, const View& view, v1::JobSpec spec, std::move_only_function<void(Result<ResolvedAfter>)> done);

}  // namespace muster::controller
