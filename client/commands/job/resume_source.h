// Finds a job and a whole checkpoint of it, for `muster resume` and `muster ckpt export`. Stateless
// functions; some call the controller. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/commands/call/context.h"
#include "common/engine/model/resume_plan.h"

namespace muster::client {

struct ResumeSource {
  v1::Job job;                         // with all of its checkpoints
  engine::SavedCheckpoint checkpoint;  // step -1: no checkpoint that counts
  std::string doing;                   // "resuming"
  // requested by its step; muster itself would not choose it any more
  bool quarantined = false;
};
// `from` is "latest" or a step. Errors: no such job, no checkpoint of that step.
Result<ResumeSource> resume_source(const Session& session, const std::string& doing,
                                   const std::string& job, const std::string& from);
// The same for a known job. Without a step it takes the newest checkpoint that is not quarantined.
// Pure.
Result<ResumeSource> choose_checkpoint(v1::Job job, const std::string& doing,
                                       std::optional<std::int64_t> step);
// Returns an error if the source has no checkpoint. Pure.
Result<void> check_checkpoint(const ResumeSource& source);

// Prints on stderr that the checkpoint was quarantined.
void print_quarantined(const Context& context, const ResumeSource& source);

// Returns the job with all its checkpoints; one answer has only the newest thousand. With
// `name_prefix` the beginning of a name is enough, for callers that only show the job.
Result<v1::Job> job_with_all(const Session& session, const std::string& name,
                             bool name_prefix = false);

// Returns "NAME-r2" for `letters` "r", with the first number that no job has. If such a name was
// made for the job, NAME is the name of the job before it.
Result<std::string> next_name(const Session& session, const v1::JobSpec& spec,
                              const std::string& letters);

// Returns that NAME. `name_of` returns the name of the job with this id, or of the chain whose
// stage 'train' the job is. An empty text means that it is not known any more. Pure.
using NameOf = std::function<std::string(const std::string& id)>;
std::string base_name(const v1::JobSpec& spec, const std::string& letters, const NameOf& name_of);

// Returns "cpu" if some node has CPU slots, otherwise an empty text.
Result<std::string> transform_type(const Session& session);

}  // namespace muster::client
