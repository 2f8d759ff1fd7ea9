// Checkpoints of DeepSpeed at another size. ZeRO cuts the optimizer for one number of ranks, with a
// file for each of them, and refuses another number (deepspeed/runtime/engine.py:
// _load_zero_checkpoint()). Without ZeRO one file has everything.
#include <fmt/format.h>

#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/model/resume_plan.h"

namespace muster::engine {

Result<void> check_deepspeed_size(const ResumeAsk& ask) {
  const std::uint64_t was = ranks_asked(*ask.before), is = ranks_asked(ask.after);
  if (was == is || ask.checkpoint.shards <= 1) return {};
  return fail(resume_error(
      ask, "resuming",
      fmt::format("{} ranks in place of {}: ZeRO has cut the optimizer for one number of ranks; "
                  "convert it with ds_to_universal.py of DeepSpeed (--input_folder '{}' "
                  "--output_folder DIR), which a program loads with checkpoint.load_universal in "
                  "DeepSpeed's configuration, or keep the number",
                  is, was, ask.checkpoint.path)));
}

Result<bool> deepspeed_is_whole(const v1::JobSpec&, const SavedCheckpoint& checkpoint) {
  if (checkpoint.shards <= 1) return true;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("a checkpoint of ZeRO is made whole by DeepSpeed's own script, as "
                          "weights alone: python3 '{0}/zero_to_fp32.py' '{0}' OUTPUT --tag "
                          "global_step{1}",
                          checkpoint.save_dir, checkpoint.step));
}

}  // namespace muster::engine
