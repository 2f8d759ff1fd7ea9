// What `muster resume` and `muster ckpt export` begin with: a job, and a whole checkpoint of it.
#pragma once

#include <string>

#include "client/commands/context.h"
#include "common/engine/reshard.h"

namespace muster::client {

struct ResumeSource {
  v1::Job job;                         // with all of its checkpoints
  engine::SavedCheckpoint checkpoint;  // step -1: it has none that counts
  std::string doing;                   // "resuming"
};
// `from`: "latest" or a step. Errors: no such job, no checkpoint of that step.
Result<ResumeSource> resume_source(const Session& session, const std::string& doing, const std::string& job, const std::string& from);
// Error: it has none.
Result<void> check_checkpoint(const ResumeSource& source);

// With all of its checkpoints: an answer holds the newest thousand.
Result<v1::Job> job_with_all(const Session& session, const std::string& name);

// "NAME-r2" for `letters` "r": the first number that no job has.
Result<std::string> next_name(const Session& session, const v1::JobSpec& spec, const std::string& letters);

// "cpu" where some node has CPU slots; else empty.
Result<std::string> transform_type(const Session& session);

}  // namespace muster::client
