// Going on with a job's training in another job, also at another size: the specs of the new job, or
// of the chain that it takes. Pure.
//
//   the same size, or an engine that loads      one job, whose start is that checkpoint
//   its checkpoints at any size
//   MindFormers at another number of ranks      three stages, each with the code, the interpreter
//                                               and the image of the job:
//
//     strategy    run_mindformer.py --only_save_strategy True at the new size: every rank's
//                 strategy file. Not where the new size is one rank: it has none
//     transform   mindformers/tools/transform_ckpt.py, one process on one node: the old strategy
//                 and the new one, the old shards -> the new shards, renamed so that they are a
//                 checkpoint of the same step
//     train       goes on from those
//
// Sources: mindspore-lab/mindformers mindformers/tools/transform_ckpt.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::engine {

struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;          // directory of the checkpoint itself
  std::string save_dir;      // of the attempt that wrote it
  std::uint32_t shards = 0;  // that it has
};

struct ResumeAsk {
  const v1::JobSpec* before = nullptr;  // complete: of the job that wrote the checkpoint
  std::string job_id;                   // its id
  SavedCheckpoint checkpoint;
  v1::JobSpec after;  // the same with what is to be different in it; complete
  std::string name;   // of the new job, or chain
  // kind of device that the transform runs on: "cpu" where a node has CPU slots; empty: as the
  // job's own
  std::string transform_type;
  // although the number of ranks is the same: the parallel configuration is not
  bool cut_again = false;
};

// In the order of the chain; one: no chain. Defaults are to be filled in. Errors: why the engine
// could not load it, and what would help.
Result<std::vector<v1::JobSpec>> plan_resume(const ResumeAsk& ask);

// One job that makes the checkpoint one whole file, `file` (absolute, or below ${out}). Of the ask
// `before`, `job_id`, `checkpoint`, `name` and `transform_type` count. Errors: the engine's
// checkpoints are not of that kind.
Result<v1::JobSpec> plan_whole(const ResumeAsk& ask, const std::string& file);

bool is_one_rank(const v1::JobSpec& spec);
// Megatron-LM's --ckpt-format torch: a file a part of the model, for one tensor x pipeline size.
// The other forms are cut when they are loaded.
bool saves_parts(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint);

// What is different in a spec, a stage's maybe, that is to be a job of its own which goes on: the
// directories of its chain's other stages are written out, and what it began with is as on an
// attempt that goes on: ${start.dir} is empty.
void leave_chain(v1::JobSpec& spec);

}  // namespace muster::engine
