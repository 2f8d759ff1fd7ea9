// What a submission names becomes what it stands for: jobs and stages become ids, places become
// paths, spec.start becomes a checkpoint. The same for a chain and for a job alone, for SubmitJob
// and for PlanJob. What comes out is what is stored; later nobody looks anything up.
//
//   schedule.after   "stage:S", names, beginnings of ids -> ids; the stages that start and inputs
//                    name are added
//   stage            chain, and dirs of the stages before it  -> ids and ${out}
//   inputs[].path    below the ${out} of a job or stage, or the path itself
//   start.dir        "job:J", "stage:S": that job's directory of checkpoints; else the directory
//                    itself
//   start.point      the checkpoint, as far as the submission can tell: of a stage that has not run
//                    its end does (core/start_point.h)
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/edge.h"
#include "controller/api/named_job.h"
#include "muster/v1/spec.pb.h"

namespace muster::controller {

struct Submission {
  std::string doing;  // "submitting", "planning"
  // complete; of a chain in order, each with the names of the stages before it in stage.dirs
  std::vector<v1::JobSpec> jobs;
  std::vector<JobId> ids;  // beside `jobs`: theirs to be
  // stages that are not submitted -> the job that stands for each
  std::map<std::string, std::string> done;
};
struct Resolved {
  std::vector<v1::JobSpec> jobs;
  // of schedule.after, those that are not in the ledger's jobs: how they ended
  std::map<JobId, core::ArchivedEnd> archived;
};

// Nothing of it has to be looked up, and nothing filled in.
bool is_plain(const v1::JobSpec& spec);

// Strand only. `done` is called once: at once, or on the archive's thread. Errors, with `doing` in
// front: NotFound, Conflict as find_named(); InvalidArgument: a job that is named twice;
// Unsatisfiable: a checkpoint that is not there. How the jobs of schedule.after stand is decide()'s
// matter.
void resolve(Edge& edge, const View& view, Submission submission,
             std::move_only_function<void(Result<Resolved>)> done);

// The pure part of it, `named` being what find_named() found for wanted_jobs().
std::vector<WantedJob> wanted_jobs(const Submission& submission);
Result<Resolved> fill_in(Submission submission, const NamedJobs& named,
                         const std::string& cluster_out);

// The newest checkpoint of the job that is not quarantined, or that of start.step; nothing: there
// is
// none, and the job begins anew then. Unsatisfiable: it cannot.
Result<std::optional<v1::StartPoint>> pick_checkpoint(const v1::StartSpec& start,
                                                      const NamedJob& job);

}  // namespace muster::controller
