// Other jobs that a spec names (schedule.after, job:J, stages that are done): found by the ledger,
// and by the archive for those that left long ago.
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
  // Not filled in where only the end is wanted.
  std::string out;          // ${out}
  std::string checkpoints;  // directory that each attempt has its own below
  std::string layout;       // of its checkpoints
  std::vector<core::CheckpointRecord> whole;
  // where those of these attempts are, with checkpoint.storage: local
  std::map<AttemptNo, core::OwnedShards> owned;
};
// Pure.
NamedJob named_job(const core::JobRecord& job, const std::string& cluster_out);

struct WantedJob {
  std::string text;       // id, beginning of one, name, @last
  std::string place;      // for messages: "schedule.after[0]"
  bool only_end = false;  // how it ended will do
};
using NamedJobs = std::map<std::string, NamedJob>;  // by text

// Strand only. `done` is called once: at once, or on the archive's thread. NotFound names jobs that
// there are, Conflict what an ambiguous beginning may mean.
void find_named(Edge& edge, const View& view, const std::vector<WantedJob>& wanted,
                std::move_only_function<void(Result<NamedJobs>)> done);

}  // namespace muster::controller
