// Plans how another job continues a job's training, also at another size. The result is the spec of
// the new job, or the specs of its chain. Pure.
//
//   the same size, or an engine that loads      one job that starts from that checkpoint
//   its checkpoints at any size
//   an engine whose checkpoints are cut for     the engine's own chain (Engine::cut_again), or a
//   one size                                    refusal (Engine::check_size)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::engine {

struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;          // directory of the checkpoint itself
  std::string save_dir;      // of the attempt that wrote it
  std::uint32_t shards = 0;  // number of shards
};

struct ResumeAsk {
  const v1::JobSpec* before = nullptr;         // complete: of the job that wrote the checkpoint
  const v1::ResolvedSpec* resolved = nullptr;  // of the same job
  std::string job_id;                          // its id
  SavedCheckpoint checkpoint;
  // the same spec after leave_chain(), with the requested changes; complete
  v1::JobSpec after;
  std::string name;  // of the new job or chain
  // device type for the transform: "cpu" where a node has CPU slots; empty: the job's own type
  std::string transform_type;
  // reshard although the number of ranks is the same: the parallel configuration is different
  bool cut_again = false;
};

struct ResumeJobs {
  std::vector<v1::JobSpec> jobs;        // in the order of the chain; one: no chain
  std::vector<v1::JobFetches> fetches;  // for the submission, with checkpoint.storage local
};

// The caller fills in the specs' defaults. Errors: why the engine could not load the checkpoint,
// and what would help.
Result<ResumeJobs> plan_resume(const ResumeAsk& ask);

// One job that turns the checkpoint into one whole file, `file` (absolute, or below ${out}). Only
// these fields of the ask are used: `before`, `resolved`, `job_id`, `checkpoint`, `name` and
// `transform_type`.
// Errors: the engine's checkpoints are not of that kind.
Result<ResumeJobs> plan_whole(const ResumeAsk& ask, const std::string& file);

// Whether the checkpoint's own directory is whole, so that nothing has to be made of it. False:
// only plan_whole() makes it so. Errors: why it cannot be exported.
Result<bool> is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint);

// Changes a spec, which may be a stage, so that it becomes a separate job that resumes and waits
// for none. Inputs and the directories of its chain's other stages are written out as paths.
// ${start.dir} is empty, as on an attempt that resumes.
void leave_chain(v1::JobSpec& spec, const v1::ResolvedSpec& resolved);

// --- for the engines' reshard.cc -----------------------------------------------------------------
Error resume_error(const ResumeAsk& ask, std::string_view doing, std::string message,
                   ErrorCode code = ErrorCode::InvalidArgument);
// The spec of the training itself, as a job of its own.
v1::JobSpec training_of(const ResumeAsk& ask);
void start_from(v1::JobSpec& spec, std::string from, std::int64_t step);
bool on_own_disks(const v1::JobSpec& spec);

}  // namespace muster::engine
