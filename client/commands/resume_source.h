// What `muster resume` and `muster ckpt export` begin with: a job, and a whole checkpoint of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/commands/context.h"
#include "common/engine/reshard.h"

namespace muster::client {

struct ResumeSource {
  v1::Job job;                         // with all of its checkpoints
  engine::SavedCheckpoint checkpoint;  // step -1: it has none that counts
  std::string doing;                   // "resuming"
  // it was asked for by its step, and muster itself would not take it any more
  bool quarantined = false;
};
// `from`: "latest" or a step. Errors: no such job, no checkpoint of that step.
Result<ResumeSource> resume_source(const Session& session, const std::string& doing,
                                   const std::string& job, const std::string& from);
// The same of a job that is known; without a step the newest that is not quarantined. Pure.
Result<ResumeSource> choose_checkpoint(v1::Job job, const std::string& doing,
                                       std::optional<std::int64_t> step);
// Error: it has none. Pure.
Result<void> check_checkpoint(const ResumeSource& source);

// On stderr: that it is one which was quarantined.
void print_quarantined(const Context& context, const ResumeSource& source);

// With all of its checkpoints: an answer holds the newest thousand. `name_prefix`: to be shown
// alone, so that the beginning of a name will do.
Result<v1::Job> job_with_all(const Session& session, const std::string& name,
                             bool name_prefix = false);

// "NAME-r2" for `letters` "r": the first number that no job has. Of a job that such a name was made
// for, NAME is what that was made of.
Result<std::string> next_name(const Session& session, const v1::JobSpec& spec,
                              const std::string& letters);

// The NAME of it. `name_of`: that of the job with this id, or of the chain whose stage 'train' it
// is; empty: it is not known any more. Pure.
using NameOf = std::function<std::string(const std::string& id)>;
std::string base_name(const v1::JobSpec& spec, const std::string& letters, const NameOf& name_of);

// "cpu" where some node has CPU slots; else empty.
Result<std::string> transform_type(const Session& session);

}  // namespace muster::client
