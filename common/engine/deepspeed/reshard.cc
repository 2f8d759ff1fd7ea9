// Checkpoints of DeepSpeed at another size. ZeRO cuts the optimizer for one number of ranks, with a
// file for each of them, and refuses another number (deepspeed/runtime/engine.py:
// _load_zero_checkpoint()), v0.6 to v0.19. Other files are of tensor parallelism, pipelines and
// experts. A checkpoint of one file has everything.
//
// Only the number of files is known here. So several files are never resumed at another size.
#include <fmt/format.h>

#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/model/resume_plan.h"

namespace muster::engine {

Result<void> check_deepspeed_size(const ResumeAsk& ask) {
  const std::uint64_t was = ranks_asked(*ask.before), is = ranks_asked(ask.after);
  if (was == is || ask.checkpoint.shards <= 1) return {};
  return fail(resume_error(
      ask, "resuming",
      fmt::format("{} ranks in place of {}: the checkpoint has {} files, and muster resumes at "
                  "another number of ranks only from one file; keep the number; or, with ZeRO, "
                  "convert it with ds_to_universal.py of DeepSpeed (--input_folder '{}' "
                  "--output_folder DIR), and start a job whose configuration of DeepSpeed has "
                  "checkpoint.load_universal: true, and false in resume.patch",
                  is, was, ask.checkpoint.shards, ask.checkpoint.path)));
}

Result<bool> deepspeed_is_whole(const v1::JobSpec&, const SavedCheckpoint& checkpoint) {
  if (checkpoint.shards <= 1) return true;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("it has {2} files; with ZeRO, DeepSpeed's own script makes one of them, "
                          "as weights alone: python3 '{0}/zero_to_fp32.py' '{0}' OUTPUT --tag "
                          "global_step{1}",
                          checkpoint.save_dir, checkpoint.step, checkpoint.shards));
}

}  // namespace muster::engine
