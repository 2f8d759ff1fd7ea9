// What a job starts with (spec.start), as far as the controller can name it: a checkpoint that no
// attempt of this job has written. Pure.
//
// It takes the role of the job's own checkpoint until there is one (checkpoints.h). It is never
// quarantined.
//
// If it comes from another job or from a directory, the submission resolved it (ResolvedStart). If
// it comes from a stage of the same chain ("stage:S"), it is known at the end of that stage. The
// PredecessorSucceeded of the job that waits carries it, so that this job's own rows alone show
// where the job starts.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// Nothing: the spec names none, or it is known only at the end of a stage.
std::optional<ResumePoint> known_start(const v1::ResolvedSpec& resolved);

// The job whose end decides the start point. Nothing: no job's end does.
std::optional<JobId> starts_behind(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved);

// What follows from the success of that job.
struct StageStart {
  // Its newest complete checkpoint that is not quarantined, or that of start.step, even if
  // quarantined.
  std::optional<ResumePoint> checkpoint;
  // Why the job cannot be placed without a checkpoint. Empty: it can, as with resume-or-scratch.
  std::string missing;
};
// `stage` nullptr: it is archived, and its checkpoints are not known here any more.
StageStart start_behind(const v1::JobSpec& spec, const std::string& stage_name,
                        const JobRecord* stage);

// Which nodes own what an attempt has saved, if each node has its own disk. A job with a single
// process has all its files on its one node.
OwnedShards owned_shards(const JobRecord& job, const AttemptRecord& attempt);

// Why a job with this spec is refused: it must resume from a checkpoint, and none is named; or it
// does not wait for the stage that decides the checkpoint. Nothing: it is accepted.
std::optional<Error> refuse_start(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved);

}  // namespace muster::core
