// Megatron-LM's training scripts (pretrain_*.py), with or without MindSpeed. In addition to
// torchrun's variables this file sets:
//
//   --save X   -> ${save.dir}, one directory for each attempt
//   --load X      unchanged at a first start: X may be empty, or contain weights.
//                 On an attempt that resumes it is ${resume.dir}, whose tracker names the one step.
//                 Options that would lose the checkpoint's state (--finetune, --no-load-*) or load
//                 another step (--ckpt-step) are removed.
//                 With spec.start's weights it is ${start.dir} at a first start, with --finetune,
//                 --no-load-optim and --no-load-rng
//   CUDA_DEVICE_MAX_CONNECTIONS=1 with tensor or context parallelism, unless there is a flag whose
//   code asserts more connections or asserts nothing
//
// Sources: NVIDIA/Megatron-LM megatron/training/arguments.py (the parser takes no abbreviations;
// validate_args) and checkpointing.py, core_r0.6 to main.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/megatron/megatron.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/observing.h"
#include "common/engine/model/rows.h"
#include "common/engine/model/start.h"
#include "common/engine/torch/torch.h"

namespace muster::engine {
namespace {

constexpr const char* kSource = "engine megatron";
constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

// With these options CUDA_DEVICE_MAX_CONNECTIONS=1 is not asserted: the first one asserts the
// opposite, and the others only warn.
constexpr std::array<std::string_view, 4> kWithoutOneConnection = {
    "--use-torch-fsdp2", "--use-custom-fsdp", "--use-megatron-fsdp",
    "--overlap-moe-expert-parallel-comm"};
// With these options the sizes on the command line are not the ones that Megatron uses.
constexpr std::array<std::string_view, 7> kOtherSizes = {
    "--yaml-cfg",
    "--use-checkpoint-args",
    "--model-parallel-size",
    "--hetero-parallel",  // MindSpeed-MM: each part of the model has its own
    "--encoder-tensor-model-parallel-size",
    "--encoder-pipeline-model-parallel-size",
    "--expert-tensor-parallel-size",
};

bool any_option(const CommandLine& command, std::span<const std::string_view> names) {
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return has_option(command, name); });
}

// A size on the command line; 1 if the option is missing. Nothing: the value is not a number yet.
std::optional<std::uint64_t> size_of(const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  return option ? whole_value(*option) : 1;
}

bool wants_one_connection(const CommandLine& command) {
  if (any_option(command, kWithoutOneConnection)) return false;
  return size_of(command, "--tensor-model-parallel-size").value_or(1) > 1 ||
         size_of(command, "--context-parallel-size").value_or(1) > 1;
}

// Directories of a checkpoint in --ckpt-format torch: one for each tensor-, pipeline- and
// expert-parallel rank. 0: the command line does not show the number.
std::uint32_t shards_of(const CommandLine& command) {
  constexpr std::array<std::string_view, 3> kSizes = {"--tensor-model-parallel-size",
                                                      "--pipeline-model-parallel-size",
                                                      "--expert-model-parallel-size"};
  constexpr std::uint64_t kMost = 1'000'000;
  if (any_option(command, kOtherSizes) || !any_option(command, kSizes)) return 0;
  std::uint64_t shards = 1;
  for (const std::string_view name : kSizes) {
    const auto size = size_of(command, name);
    if (!size || *size == 0 || *size > kMost / shards) return 0;
    shards *= *size;
  }
  return static_cast<std::uint32_t>(shards);
}

// Loads spec.start as weights: training begins at iteration 0, regardless of the checkpoint's own
// count.
void load_weights(Launching& launching, bool saves) {
  CommandLine& command = launching.command;
  const auto load = find_option(command, "--load");
  const bool named = load && load->has_value && load->value == "${start.dir}";
  if (launching.request.start_dir.empty() || (names_start_dir(*launching.request.spec) && !named))
    return;
  if (!saves && !load) return;
  put_option(command, "--load", "${start.dir}", kStartSource);
  drop_option(command, "--ckpt-step");
  for (const char* flag : {"--finetune", "--no-load-optim", "--no-load-rng"})
    if (!has_option(command, flag)) command.push_back({flag, kStartSource});
}

void set_directories(Launching& launching, const char* source) {
  CommandLine& command = launching.command;
  const auto save = find_option(command, "--save");
  const bool saves = save && save->has_value;
  if (saves && save->value.find("${save.dir}") == std::string_view::npos)
    set_option(command, "--save", "${save.dir}", source);
  if (!launching.request.resuming()) {
    // An empty directory name would mean the working directory, which may contain another program's
    // tracker.
    if (const auto load = find_option(command, "--load");
        load && load->has_value && load->value == "${resume.dir}")
      drop_option(command, "--load");
    load_weights(launching, saves);
    return;
  }
  if (!saves && !has_option(command, "--load")) return;  // not a training script's command line
  put_option(command, "--load", "${resume.dir}", resume_word(launching.request, source));
  drop_option(command, "--ckpt-step");
  drop_flag(command, "--finetune");
  for (const auto& [load, none_saved] : {std::pair{"--no-load-optim", "--no-save-optim"},
                                         std::pair{"--no-load-rng", "--no-save-rng"}}) {
    drop_flag(command, load);
    if (has_option(command, none_saved) && !has_option(command, load))
      command.push_back({load, source});
  }
}

std::string key_of(const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  return option ? command[option->word].key : "launch.args";
}

// Follows validate_args: world_size % (tensor x pipeline x context), and the experts over the rest.
// Releases differ in the groups over which experts are distributed (before core_r0.9 only those of
// data parallelism). So muster refuses only what every release refuses.
void check_parallel(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  if (any_option(command, kOtherSizes)) return;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSizes = {
      {{"--tensor-model-parallel-size", "tensor"},
       {"--pipeline-model-parallel-size", "pipeline"},
       {"--context-parallel-size", "context"},
       {"--expert-model-parallel-size", "expert"}}};
  // more ranks than possible; keeps the product of two sizes within 64 bits
  static constexpr std::uint64_t kSizeMax = 1 << 30;
  std::array<std::uint64_t, 4> sizes{};
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const auto size = size_of(command, kSizes[i].first);
    if (!size) return;
    if (*size == 0)
      return problems.push_back({.key = key_of(command, kSizes[i].first),
                                 .message = fmt::format("{} must be at least 1", kSizes[i].first)});
    sizes[i] = std::min(*size, kSizeMax);
  }
  const auto [tensor, pipeline, context, expert] = sizes;
  const auto times = [](std::uint64_t a, std::uint64_t b) { return std::min(a * b, kSizeMax); };
  const std::uint64_t model = times(times(tensor, pipeline), context), ranks = ranks_asked(spec);
  const std::string_view widest = tensor > 1     ? kSizes[0].first
                                  : pipeline > 1 ? kSizes[1].first
                                                 : kSizes[2].first;
  if (ranks % model != 0)
    return problems.push_back(
        {.key = key_of(command, widest),
         .message = fmt::format("{} rank{} cannot be split into tensor {} x pipeline {} x context "
                                "{}: Megatron wants a whole multiple of {}; change the sizes, "
                                "or resources.nodes and resources.devices",
                                ranks, ranks == 1 ? "" : "s", tensor, pipeline, context, model)});
  const bool old_release = (ranks / model) % expert == 0,
             new_release = ranks % times(times(tensor, pipeline), expert) == 0;
  if (!old_release && !new_release)
    problems.push_back(
        {.key = key_of(command, kSizes[3].first),
         .message =
             fmt::format("experts cannot be spread over {} of {} ranks with tensor {} x pipeline "
                         "{} x context {}; change --expert-model-parallel-size, or resources.nodes "
                         "and resources.devices",
                         expert, ranks, tensor, pipeline, context)});
}

// A checkpoint without the optimizer is only weights: the step count continues, but the state is
// lost. A node's script runs unchanged: its launcher reports the option (ScriptLaunched), and no
// attempt resumes from such a checkpoint.
void check_resumable(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  if (spec.launch().per() == v1::LAUNCH_PER_NODE && spec.launch().intercept()) return;
  if (!spec.resume().enabled() || !has_option(command, "--save") ||
      !has_option(command, "--no-save-optim"))
    return;
  problems.push_back({.key = key_of(command, "--no-save-optim"),
                      .message = "with --no-save-optim checkpoints hold weights alone, from which "
                                 "a later attempt cannot go on; leave it out, or start every "
                                 "attempt from the beginning with resume: none"});
}

void check_connections(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  if (!has_option(command, "--use-torch-fsdp2")) return;
  for (const auto& [env, key] : {std::pair{&spec.runtime().env(), "runtime.env"},
                                 std::pair{&spec.resume().env(), "resume.env"}}) {
    const auto found = env->find(kConnections);
    if (found != env->end() && found->second == "1")
      problems.push_back(
          {.key = fmt::format("{}.{}", key, kConnections),
           .message = "Megatron refuses 1 with --use-torch-fsdp2; leave it out or give more"});
  }
}

// Each of these options alone may be one of another program.
bool has_megatron_arguments(std::span<const std::string> args) {
  return has_option(args, "--micro-batch-size") &&
         (has_option(args, "--train-iters") || has_option(args, "--train-samples"));
}

}  // namespace

void launch_on_megatron(Launching& launching, const char* source) {
  put_torchrun(launching, source);
  if (wants_one_connection(launching.command))
    for (RankPlan& rank : launching.plan.ranks) put_default(rank.env, kConnections, "1", source);
  launching.plan.watching.set_shards(shards_of(launching.command));
  set_directories(launching, source);
}

void launch_megatron(Launching& launching) {
  launch_on_megatron(launching, kSource);
  put_profile(launching);
}

// set_directories() gives --save another value. Without --save Megatron saves to the directory of
// its configuration (--yaml-cfg), or does not save.
bool megatron_sets_save_dir(const v1::JobSpec& spec) {
  const CommandLine command = spec_words(spec);
  const auto save = find_option(command, "--save");
  return save && save->has_value;
}

// Does what load_weights() does. For a node's script the launcher shim changes the arguments of its
// torchrun call.
bool megatron_loads_start(const v1::JobSpec& spec) {
  if (spec.launch().per() == v1::LAUNCH_PER_NODE) return spec.launch().intercept();
  return megatron_sets_save_dir(spec) || has_option(spec_words(spec), "--load");
}

LaunchSigns megatron_signs() {
  return {.launchers = torch_signs().launchers, .by_arguments = has_megatron_arguments};
}

void check_megatron(const v1::JobSpec& spec, Problems& problems) {
  const CommandLine command = spec_words(spec);
  check_parallel(spec, command, problems);
  check_resumable(spec, command, problems);
  check_connections(spec, command, problems);
  check_torch(spec, problems);
}

// Does what launch_megatron() does for a rank's own command line: --save is the attempt's
// directory, and on an attempt that resumes nothing is loaded but the chosen step.
ArgumentEdits intercepted_megatron(const LaunchRequest& request) {
  using enum ArgumentEdit::Kind;
  ArgumentEdits edits = {
      {.kind = OnlyWith, .options = {"--save", "--load"}},
      {.kind = Saves, .option = "--save", .value = "--no-save-optim"},
  };
  const bool starts =
      !request.resuming() && !request.start_dir.empty() && !names_start_dir(*request.spec);
  if (!request.resuming() && !starts) edits.push_back({.kind = Loads, .option = "--load"});
  edits.push_back({.kind = Set, .option = "--save", .value = request.save_dir});
  if (!request.resuming()) {
    if (!starts) return edits;
    edits.push_back({.kind = Put, .option = "--load", .value = request.start_dir});
    edits.push_back({.kind = DropValue, .option = "--ckpt-step"});
    for (const char* flag : {"--finetune", "--no-load-optim", "--no-load-rng"})
      edits.push_back({.kind = Match, .option = flag, .value = "--load"});
    return edits;
  }
  edits.push_back({.kind = Put, .option = "--load", .value = request.resume_dir});
  edits.push_back({.kind = DropValue, .option = "--ckpt-step"});
  edits.push_back({.kind = Drop, .option = "--finetune"});
  edits.push_back({.kind = Match, .option = "--no-load-optim", .value = "--no-save-optim"});
  edits.push_back({.kind = Match, .option = "--no-load-rng", .value = "--no-save-rng"});
  return edits;
}

}  // namespace muster::engine
