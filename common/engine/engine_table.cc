#include <algorithm>
#include <array>

#include "common/engine/ascend/modelarts.h"
#include "common/engine/command/command.h"
#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/megatron/megatron.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/mindspeed_mm/mindspeed_mm.h"
#include "common/engine/model/host_network.h"
#include "common/engine/model/resume_plan.h"
#include "common/engine/model/rows.h"
#include "common/engine/patch_plan.h"
#include "common/engine/torch/torch.h"

namespace muster::engine {

namespace {

constexpr auto kMindformersInputs = std::to_array<std::string_view>(
    {"--train_dataset_dir", "--eval_dataset_dir", "--load_checkpoint"});
constexpr auto kMindformersKeys = std::to_array<std::string_view>(
    {"load_checkpoint", "dataset_dir", "checkpoint_name_or_path", "src_strategy_path_or_dir",
     "strategy_ckpt_load_file", "vocab_file", "merges_file", "tokenizer_file"});
constexpr auto kMegatronInputs = std::to_array<std::string_view>(
    {"--load", "--tokenizer-model", "--tokenizer-name-or-path", "--vocab-file", "--merge-file"});
constexpr auto kMegatronPrefixes = std::to_array<std::string_view>(
    {"--data-path", "--train-data-path", "--valid-data-path", "--test-data-path"});
constexpr std::array<std::string_view, 1> kMegatronPatches = {"node-local-index"};

}  // namespace

std::span<const Engine> engine_table() {
  static const std::array<Engine, 6> table = {{
      {.name = "mindformers",
       .summary = "MindFormers' run_mindformer.py on MindSpore: rank table or msrun's variables, a "
                  "working directory a rank, the output root an attempt",
       .grammar = "mindformers",
       .log_lines = {mindformers_heads},
       .layout = "mindformers",
       .checkpoints = mindformers_layout,
       .rank_dirs = true,
       .script = "run_mindformer.py",
       .own_modes = true,
       .lockstep = true,
       .last_step = true,
       .identity = mindformers_identity(),
       .cloud = mindformers_cloud(),
       .hccl = true,
       .input_options = kMindformersInputs,
       .input_keys = kMindformersKeys,
       .output_option = "--remote_save_url",
       .output_key = "remote_save_url",
       .own_arguments = true,
       .by_table = mindformers_by_table,
       .launch = launch_mindformers,
       .check = check_mindformers,
       .intercepted = intercepted_mindformers,
       .has_scheduler = mindformers_has_scheduler,
       .sets_save_dir = mindformers_sets_save_dir,
       .loads_start = mindformers_loads_start,
       .run_mode = mindformers_run_mode,
       .trains_surely = mindformers_trains_surely,
       .rank_file = mindformers_rank_file,
       .put_profile = put_mindformers_profile,
       .check_profile = check_mindformers_profile,
       .profiles_one_step = true,
       .put_dump = put_mindformers_dump,
       .check_dump = check_mindformers_dump,
       .is_cut_by_rank = mindformers_is_cut_by_rank,
       .cut_again = mindformers_cut_again,
       .make_whole = mindformers_make_whole,
       .is_whole = mindformers_is_whole,
       .put_script = put_mindformers_script,
       .signs = mindformers_signs()},
      {.name = "megatron",
       .summary = "Megatron-LM, MindSpeed included: torchrun's worker variables, --save and --load "
                  "an attempt",
       .grammar = "megatron",
       .log_lines = {megatron_heads},
       .layout = "megatron",
       .checkpoints = megatron_layout,
       .builtin_patches = kMegatronPatches,
       .lockstep = true,
       .last_step = true,
       .identity = torch_identity(),
       .hccl = true,
       .torch_workers = true,
       .input_options = kMegatronInputs,
       .prefix_options = kMegatronPrefixes,
       .own_arguments = true,
       .launch = launch_megatron,
       .check = check_megatron,
       .intercepted = intercepted_megatron,
       .sets_save_dir = megatron_sets_save_dir,
       .loads_start = megatron_loads_start,
       .names_dirs = true,
       .put_profile = put_megatron_profile,
       .check_profile = check_megatron_profile,
       .check_size = check_megatron_size,
       .is_whole = megatron_is_whole,
       .signs = megatron_signs()},
      // Its FSDP2 back end writes what Megatron's torch_dcp writes, and one more directory, which
      // the layout knows.
      {.name = "mindspeed-mm",
       .summary = "MindSpeed-MM: as megatron",
       .grammar = "mindspeed-mm",
       .log_lines = {megatron_heads, mindspeed_mm_heads},
       .layout = "mindspeed-mm",
       .checkpoints = megatron_layout,
       .lockstep = true,
       .last_step = true,
       .identity = torch_identity(),
       .hccl = true,
       .torch_workers = true,
       .input_options = kMegatronInputs,
       .prefix_options = kMegatronPrefixes,
       .own_arguments = true,
       .launch = launch_mindspeed_mm,
       .check = check_mindspeed_mm,
       .intercepted = intercepted_megatron,
       .sets_save_dir = megatron_sets_save_dir,
       .loads_start = megatron_loads_start,
       .names_dirs = true,
       .check_profile = check_mindspeed_mm_profile,
       .profile_patch = mindspeed_mm_profile_patch,
       .check_size = check_megatron_size,
       .is_whole = megatron_is_whole,
       .signs = mindspeed_mm_signs()},
      // A program of one's own often saves as Megatron-LM does: these files are found.
      {.name = "torch",
       .summary = "PyTorch training: torchrun's worker variables for every rank, Megatron-LM's "
                  "checkpoints and log lines where there are any",
       .grammar = "auto",
       .layout = "torch",
       .checkpoints = megatron_layout,
       .lockstep = true,
       .identity = torch_identity(),
       .hccl = true,
       .torch_workers = true,
       .launch = launch_torch,
       .check = check_torch,
       .signs = torch_signs()},
      {.name = "deepspeed",
       .summary = "DeepSpeed: torchrun's worker variables, and what DeepSpeed's launcher gives in "
                  "addition to them; its own checkpoints and log lines",
       .grammar = "deepspeed",
       .log_lines = {deepspeed_heads},
       .layout = "deepspeed",
       .checkpoints = deepspeed_layout,
       .lockstep = true,
       .identity = deepspeed_identity(),
       .hccl = true,
       .torch_workers = true,
       .launch = launch_deepspeed,
       .check = check_deepspeed,
       .check_size = check_deepspeed_size,
       .is_whole = deepspeed_is_whole},
      {.name = "command",
       .summary = "any program: only the neutral MUSTER_* variables",
       .grammar = "auto",
       .layout = "command",
       .checkpoints = megatron_layout,
       .any_program = true,
       .launch = launch_command},
  }};
  return table;
}

const Engine* find_engine(std::string_view name) {
  const auto table = engine_table();
  const auto found = std::ranges::find(table, name, &Engine::name);
  return found == table.end() ? nullptr : &*found;
}

bool starts_by_table(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return engine != nullptr && engine->by_table != nullptr && engine->by_table(spec);
}

bool is_ascend(std::string_view type) { return type.starts_with("ascend"); }
bool is_device_type(std::string_view asked, std::string_view has) {
  return asked == has || (asked == "ascend" && is_ascend(has));
}

bool has_scheduler(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return spec.launch().per() != v1::LAUNCH_PER_NODE && engine != nullptr &&
         engine->has_scheduler != nullptr && engine->has_scheduler(spec);
}

bool wants_hccl_port(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return engine != nullptr && engine->hccl && !spec.runtime().env().contains(kHcclBasePort);
}

bool is_identity(const Engine& engine, std::string_view variable) {
  return variable.starts_with("MUSTER_") ||
         std::ranges::find(engine.identity, variable) != engine.identity.end();
}

}  // namespace muster::engine
