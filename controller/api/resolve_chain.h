// Works out the resolved spec of each job of a submission: jobs and stages become ids, places
// become paths, and spec.start becomes a checkpoint. The functions own nothing. resolve() runs on
// the shell's strand, and on the archive's thread for archived jobs.
//
// A chain and a single job are handled in the same way, and so are SubmitJob and PlanJob. The
// result is stored; nothing is looked up later.
//
//   after          schedule.after's "stage:S", names, beginnings of ids -> ids; the stages that
//                  start and inputs name are added
//   stage          chain, and dirs of the stages before it -> ids and ${out}
//   inputs         below the ${out} of a job or stage, or the path itself
//   start.dir      "job:J", "stage:S": that job's directory of checkpoints; else the directory
//                  itself
//   start.point    the checkpoint, as far as the submission can know it: if it comes from a stage
//                  that has not run, it is known at the end of that stage (start_point.h of
//                  controller/core/chains)
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/complete_spec.h"
#include "controller/api/edge.h"
#include "controller/api/named_job.h"
#include "muster/v1/spec.pb.h"

namespace muster::controller {

struct Submission {
  std::string doing;              // "submitting", "planning"
  std::vector<JobToSubmit> jobs;  // of a chain: in order
  std::vector<JobId> ids;         // parallel to `jobs`: the ids that they get
  // Stages that are not submitted -> the job that replaces each.
  std::map<std::string, std::string> done;
};
struct Resolved {
  std::vector<JobToSubmit> jobs;
  // The jobs of resolved.after that are not in the ledger's jobs: how they ended.
  std::map<JobId, core::ArchivedEnd> archived;
};

// Nothing in it has to be looked up: its resolved spec is whole already.
bool is_plain(const v1::JobSpec& spec);

// Strand only. `done` is called once: at once, or on the archive's thread. decide() judges the
// state of the jobs of schedule.after.
//
// Errors begin with `doing`. NotFound and Conflict: as in find_named(). InvalidArgument: a job is
// named twice. Unsatisfiable: a checkpoint does not exist. NotAllowed: the submission goes on from
// a job that the caller may not see.
void resolve(Edge& edge, const JobAccess& access, const View& view, Submission submission,
             std::move_only_function<void(Result<Resolved>)> done);

// The pure part of resolve(). `named` is what find_named() found for wanted_jobs().
std::vector<WantedJob> wanted_jobs(const Submission& submission);
Result<Resolved> fill_in(Submission submission, const NamedJobs& named,
                         const std::string& cluster_out, const std::string& inputs_root);

// The newest checkpoint of the job that is not quarantined, or that of start.step. Nothing: there
// is none, and the job may begin anew. Unsatisfiable: it may not.
Result<std::optional<v1::StartPoint>> pick_checkpoint(const v1::StartSpec& start,
                                                      const NamedJob& job);

}  // namespace muster::controller
