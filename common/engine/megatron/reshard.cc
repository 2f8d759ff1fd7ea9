// Checkpoints of Megatron-LM at another size. Those of --ckpt-format torch are cut for one tensor x
// pipeline size, with one file for each part of the model; the other formats are cut when they are
// loaded.
#include <fmt/format.h>

#include "common/engine/megatron/megatron.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/resume_plan.h"

namespace muster::engine {
namespace {

bool saves_parts(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint) {
  const CommandLine command = spec_words(spec);
  const auto format = find_option(command, "--ckpt-format");
  return format ? format->value == "torch" : checkpoint.shards > 1;
}

}  // namespace

Result<void> check_megatron_size(const ResumeAsk& ask) {
  const CommandLine before = spec_words(*ask.before), after = spec_words(ask.after);
  if (!saves_parts(*ask.before, ask.checkpoint)) return {};
  for (const char* name : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                           "--expert-model-parallel-size"}) {
    const auto then = find_option(before, name), now = find_option(after, name);
    const std::string_view was = then ? then->value : "1", is = now ? now->value : "1";
    if (was != is)
      return fail(
          resume_error(ask, "resuming",
                       fmt::format("{} {} in place of {}: checkpoints of --ckpt-format torch are "
                                   "cut for one tensor x pipeline size; convert it with "
                                   "tools/checkpoint/convert.py of Megatron-LM (--loader mcore "
                                   "--saver mcore) and start from its directory, or keep the size",
                                   name, is, was)));
  }
  return {};
}

Result<bool> megatron_is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint) {
  if (saves_parts(spec, checkpoint))
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("a checkpoint of --ckpt-format torch is made whole by Megatron-LM's own "
                    "converter: tools/checkpoint/convert.py --model-type GPT --loader mcore "
                    "--saver mcore --load-dir '{}' --save-dir DIR --target-tensor-parallel-size 1 "
                    "--target-pipeline-parallel-size 1",
                    checkpoint.save_dir));
  return true;
}

}  // namespace muster::engine
