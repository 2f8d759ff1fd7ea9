// What a job starts with (spec.start), as far as the controller can name it: a checkpoint that no
// attempt of this job has written. It stands in for a checkpoint of its own until there is one
// (checkpoints.h), and is never quarantined. Pure.
//
// Of another job, or of a directory, the submission says it (start.point). Of a stage of the same
// chain ("stage:S") the end of that stage does: the PredecessorSucceeded of the job that waits
// carries it, so that this job's own rows alone tell where it starts.
#pragma once

#include <optional>
#include <string>

#include "controller/core/core.h"

namespace muster::core {

// Nothing: the spec names none, or only the end of a stage will tell.
std::optional<ResumePoint> known_start(const v1::JobSpec& spec);

// The job whose end tells it; nothing: nobody's does.
std::optional<JobId> starts_behind(const v1::JobSpec& spec);

// What the success of that job tells.
struct StageStart {
  // its newest whole one that is not quarantined, or that of start.step, whatever was made of it
  std::optional<ResumePoint> checkpoint;
  // why the job cannot be placed without one; empty: it can, as resume-or-scratch
  std::string missing;
};
// `stage` nullptr: it is archived, and its checkpoints are not known here any more.
StageStart start_behind(const v1::JobSpec& spec, const std::string& stage_name,
                        const JobRecord* stage);

// Where what an attempt has saved lies when each node has a disk of its own. A job that is one
// process has what it makes on its one node.
OwnedShards owned_shards(const JobRecord& job, const AttemptRecord& attempt);

// Why a job with this spec cannot be taken: it is to go on from a checkpoint, and none is named, or
// it does not wait for the stage that tells it. Nothing: it can.
std::optional<Error> refuse_start(const v1::JobSpec& spec);

}  // namespace muster::core
