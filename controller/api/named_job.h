// Finds other jobs that a spec names (schedule.after, job:J, stages that are done). The functions
// own nothing. They run on the shell's strand, and on the archive's thread for jobs that are only
// in the archive.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/api/edge.h"

namespace muster::controller {

struct NamedJob {
  JobId id;
  std::string name;
  core::JobPhase phase{};
  bool archived = false;  // not among the ledger's jobs
  // Filled in only if more than the end is wanted.
  std::string out;          // ${out}
  std::string checkpoints;  // directory that contains each attempt's own one
  std::string layout;       // of its checkpoints
  std::vector<core::CheckpointRecord> whole;
  // Which nodes own the checkpoints of these attempts, with checkpoint.storage: local.
  std::map<AttemptNo, core::OwnedShards> owned;
};
// Pure.
NamedJob named_job(const core::JobRecord& job, const std::string& cluster_out);

struct WantedJob {
  std::string text;       // id, beginning of an id, name, @last
  std::string place;      // for messages: "schedule.after[0]"
  bool only_end = false;  // only how it ended is needed
};
using NamedJobs = std::map<std::string, NamedJob>;  // by text

// Strand only. `done` is called once: at once, or on the archive's thread. NotFound names some
// existing jobs. Conflict lists what an ambiguous beginning may mean. NotAllowed: more than the end
// is wanted of a job that the caller may not see.
void find_named(Edge& edge, const JobAccess& access, const View& view,
                const std::vector<WantedJob>& wanted,
                std::move_only_function<void(Result<NamedJobs>)> done);

}  // namespace muster::controller
