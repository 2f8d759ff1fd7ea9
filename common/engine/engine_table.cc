#include <algorithm>
#include <array>

#include "common/engine/ascend/modelarts.h"
#include "common/engine/model/host_network.h"
#include "common/engine/model/rows.h"
#include "common/engine/patch_plan.h"

namespace muster::engine {

std::span<const Engine> engine_table() {
  static const std::array<Engine, 5> table = {{
      {.name = "mindformers",
       .summary = "MindFormers' run_mindformer.py on MindSpore: rank table or msrun's variables, a "
                  "working directory a rank, the output root an attempt",
       .grammar = "mindformers",
       .layout = "mindformers",
       .lockstep = true,
       .last_step = true,
       .identity = mindformers_identity(),
       .cloud = mindformers_cloud(),
       .hccl = true,
       .launch = launch_mindformers,
       .check = check_mindformers,
       .intercepted = intercepted_mindformers,
       .needs = mindformers_needs,
       .sets_save_dir = mindformers_sets_save_dir,
       .loads_start = mindformers_loads_start},
      {.name = "megatron",
       .summary = "Megatron-LM, MindSpeed included: torchrun's worker variables, --save and --load "
                  "an attempt",
       .grammar = "megatron",
       .layout = "megatron",
       .lockstep = true,
       .last_step = true,
       .identity = torch_identity(),
       .cloud = {},
       .hccl = true,
       .launch = launch_megatron,
       .check = check_megatron,
       .intercepted = intercepted_megatron,
       .sets_save_dir = megatron_sets_save_dir,
       .loads_start = megatron_loads_start},
      {.name = "mindspeed-mm",
       .summary = "MindSpeed-MM: as megatron",
       .grammar = "mindspeed-mm",
       .layout = "mindspeed-mm",
       .lockstep = true,
       .last_step = true,
       .identity = torch_identity(),
       .cloud = {},
       .hccl = true,
       .launch = launch_mindspeed_mm,
       .check = check_mindspeed_mm,
       .intercepted = intercepted_megatron,
       .sets_save_dir = megatron_sets_save_dir,
       .loads_start = megatron_loads_start},
      {.name = "torch",
       .summary = "PyTorch training: torchrun's worker variables for every rank, Megatron-LM's "
                  "checkpoints and log lines where there are any",
       .grammar = "auto",
       .layout = "megatron",
       .lockstep = true,
       .identity = torch_identity(),
       .cloud = {},
       .hccl = true,
       .launch = launch_torch,
       .check = check_torch},
      {.name = "command",
       .summary = "any program: only the neutral MUSTER_* variables",
       .grammar = "auto",
       .layout = "megatron",
       .lockstep = false,
       .identity = {},
       .cloud = {},
       .launch = launch_command,
       .check = nullptr},
  }};
  return table;
}

const Engine* find_engine(std::string_view name) {
  const auto table = engine_table();
  const auto found = std::ranges::find(table, name, &Engine::name);
  return found == table.end() ? nullptr : &*found;
}

bool is_ascend(std::string_view type) { return type.starts_with("ascend"); }
bool is_device_type(std::string_view asked, std::string_view has) {
  return asked == has || (asked == "ascend" && is_ascend(has));
}

std::vector<std::string_view> features_needed(const v1::JobSpec& spec) {
  std::vector<std::string_view> needed;
  const bool script = spec.launch().per() == v1::LAUNCH_PER_NODE;
  if (script) needed.push_back(kNodeScript);
  const Engine* engine = find_engine(spec.engine());
  if (const std::string_view own =
          script || engine == nullptr || engine->needs == nullptr ? "" : engine->needs(spec);
      !own.empty())
    needed.push_back(own);
  const bool fetches_files =
      spec.resources().has_rank_table() || gives_group_list(spec) || spec.observe().has_dump();
  if (fetches_files && std::ranges::find(needed, kLaunchFiles) == needed.end())
    needed.push_back(kLaunchFiles);
  if (!spec.runtime().setup().empty()) needed.push_back(kSetup);
  if (patches_files(spec)) needed.push_back(kPatchedFiles);
  if (!spec.runtime().image().empty()) needed.push_back(kContainers);
  if (spec.runtime().limits().memory() != 0 || spec.runtime().limits().millicpus() != 0)
    needed.push_back(kContainerLimits);
  if (spec.success().means_case() == v1::SuccessSpec::kRankFile) needed.push_back(kRankFiles);
  if (!spec.code().patches().empty()) needed.push_back(kCodePatches);
  if (spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL) needed.push_back(kFetchFiles);
  return needed;
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
