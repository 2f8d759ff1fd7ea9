// MindFormers' run_mindformer.py, r0.6 to master.
//
//   arguments    --config, --run_mode and --use_parallel, unless the command line has them;
//                --load_checkpoint, --resume_training and --auto_trans_ckpt on an attempt that
//                resumes; --load_checkpoint alone, without --resume_training, at a first start with
//                spec.start's weights.
//                --output_dir is an argument from r1.x on (--auto_trans_ckpt from r0.8). Before
//                that it is an unknown `--key value`: MindFormers sets the key and then ignores it,
//                and LOCAL_DEFAULT_PATH is used. Later releases overwrite LOCAL_DEFAULT_PATH with
//                output_dir. So muster gives both. MindFormers splits unknown pairs at '=', so no
//                value that muster gives may contain one
//   output root  ${save.dir}: checkpoint/rank_N below it is the attempt's own
//   directory    one working directory for each rank: otherwise graph dumps, compile caches and
//                relative logs of two ranks would overwrite each other
//   rank table   RANK_TABLE_FILE, RANK_ID, RANK_SIZE, DEVICE_ID. HCCL compares the table's
//                device_id with the physical number of the card that DEVICE_ID, a logical number,
//                has opened. So nothing may renumber the visible devices:
//                ASCEND_RT_VISIBLE_DEVICES is not set
//   msrun        MindSpore's dynamic cluster, with muster in msrun's role: a scheduler on the node
//                of rank 0, at MASTER's address and port, and MS_* for each worker. Here MindSpore
//                counts devices by local rank, so ASCEND_RT_VISIBLE_DEVICES is set and DEVICE_ID
//                is not
//   one rank     neither of the two: --use_parallel False, and --device_id, because otherwise the
//                configuration's own device 0 would be used
//
// Sources: mindspore-lab/mindformers run_mindformer.py, mindformers/core/context/build_context.py,
// mindformers/tools/utils.py, scripts/msrun_launcher.sh; mindspore-ai/mindspore
// mindspore/python/mindspore/parallel/cluster/process_entity/_api.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/ascend/table_plan.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/host_network.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/observing.h"
#include "common/engine/model/rows.h"
#include "common/engine/model/start.h"
#include "common/engine/model/training_end.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

constexpr const char* kSource = "engine mindformers";
constexpr std::string_view kScript = "run_mindformer.py";
constexpr const char* kVisible = "ASCEND_RT_VISIBLE_DEVICES";

constexpr std::array<std::string_view, 11> kIdentity = {
    // MindSpore reads the older name, MINDSPORE_HCCL_CONFIG_PATH, first
    "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH",
    "RANK_ID",         "RANK_SIZE",
    "DEVICE_ID",       "LOCAL_DEFAULT_PATH",
    "MS_ROLE",         "MS_WORKER_NUM",
    "MS_NODE_ID",      "MS_SCHED_HOST",
    "MS_SCHED_PORT",
};

// check_in_modelarts(): if one of them is set, MindFormers imports the cloud's client library and
// moves its output to /cache.
constexpr std::array<std::string_view, 6> kCloud = {
    "MA_LOG_DIR",       "MA_JOB_DIR",           "MA_LOCAL_LOG_PATH",
    "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "BATCH_GROUP_NAME",
};

constexpr std::array<std::string_view, 1> kLaunchers = {"msrun"};
// The rank table's variable, and msrun's.
constexpr std::array<std::string_view, 2> kRankVariables = {"RANK_ID", "MS_ROLE"};

bool is_strategy(const v1::JobSpec& spec) {
  return spec.launch().mode() == v1::LAUNCH_MODE_STRATEGY;
}

// Mode strategy makes the strategy of a training.
std::string_view mode_word(const v1::JobSpec& spec) {
  const v1::LaunchMode mode = spec.launch().mode();
  return mode == v1::LAUNCH_MODE_FINETUNE  ? "finetune"
         : mode == v1::LAUNCH_MODE_EVAL    ? "eval"
         : mode == v1::LAUNCH_MODE_PREDICT ? "predict"
                                           : "train";
}

bool is_script(std::string_view word) {
  return word.ends_with(kScript) &&
         (word.size() == kScript.size() || word[word.size() - kScript.size() - 1] == '/');
}

// Whether these are run_mindformer.py's arguments. Scripts of single models accept some of them and
// refuse others, and launch.run may be any command.
bool is_known_command(const v1::JobSpec& spec, const CommandLine& command) {
  if (spec.launch().run().empty()) return is_script(spec.launch().script());
  return std::ranges::any_of(command, [](const Word& word) { return is_script(word.text); });
}

bool is_true(const std::optional<Option>& option) {
  constexpr std::string_view kTrue = "true";
  return option && std::ranges::equal(option->value, kTrue,
                                      [](char a, char b) { return a == b || a == b - 'a' + 'A'; });
}
bool is_false(const std::optional<Option>& option) {
  constexpr std::string_view kFalse = "false";
  return option && std::ranges::equal(option->value, kFalse,
                                      [](char a, char b) { return a == b || a == b - 'a' + 'A'; });
}

void put_default_option(CommandLine& command, std::string_view name, std::string_view value) {
  if (!has_option(command, name)) put_option(command, name, value, kSource);
}

void set_arguments(Launching& launching) {
  const LaunchRequest& request = launching.request;
  const v1::JobSpec& spec = *request.spec;
  CommandLine& command = launching.command;
  const bool known = is_known_command(spec, command);
  if (!spec.launch().config().empty() && (known || spec.launch().run().empty())) {
    command.push_back({"--config", "launch.config"});
    command.push_back({below_code(spec, spec.launch().config()), "launch.config"});
  }
  if (!known) return;
  // The script is relative to the code directory, for which it was written, and not to the rank's
  // own directory.
  for (Word& word : command)
    if (word.key.starts_with("launch.run") && is_script(word.text))
      word.text = below_code(spec, word.text);
  if (request.save_dir.find('=') != std::string::npos ||
      request.out_dir.find('=') != std::string::npos)
    launching.problems.push_back(
        {.key = "outputs.dir",
         .message = fmt::format(
             "'{}' has a '=' in it, at which run_mindformer.py takes its arguments apart; choose "
             "another directory (outputs.dir, checkpoint.dir)",
             request.save_dir)});
  const bool alone = request.world_size() == 1;
  put_default_option(command, "--run_mode", mode_word(spec));
  put_default_option(command, "--use_parallel", alone ? "False" : "True");
  if (alone) put_default_option(command, "--device_id", "${device_id}");
  put_option(command, "--output_dir", "${save.dir}", kSource);
  put_profile(launching);
  if (is_strategy(spec)) put_option(command, "--only_save_strategy", "True", kSource);
  if (!request.resuming() && !request.start_dir.empty() && !names_start_dir(spec))
    put_option(command, "--load_checkpoint", "${start.dir}", kStartSource);
  if (!request.resuming() || !asks_for_training(spec)) return;
  put_option(command, "--load_checkpoint", "${resume.dir}", resume_word(request, kSource));
  put_option(command, "--resume_training", "True", kSource);
  // A first start may have cut the checkpoint for this job's layout. After that it has this layout,
  // regardless of the configuration.
  put_option(command, "--auto_trans_ckpt", "False", kSource);
  drop_option(command, "--src_strategy_path_or_dir");
}

void put_common(const LaunchRequest& request, LaunchPlan& plan, const std::string& world) {
  // is_publicly_accessible_path() and the search for a node's first rank use DEVICE_NUM_PER_NODE;
  // its default is 8.
  const std::uint32_t first = request.nodes.front().rank_count;
  const bool uniform =
      first != 8 && std::ranges::all_of(request.nodes, [first](const PlacedNode& node) {
        return node.rank_count == first;
      });
  for (RankPlan& rank : plan.ranks) {
    put_hccl_port(request, rank, kSource);
    put(rank.env, "RANK_ID", std::to_string(rank.rank), kSource);
    put(rank.env, "RANK_SIZE", world, kSource);
    put(rank.env, "LOCAL_DEFAULT_PATH", request.save_dir, kSource);
    if (uniform) put_default(rank.env, "DEVICE_NUM_PER_NODE", std::to_string(first), kSource);
  }
}

void put_device(RankPlan& rank) {
  rank.env.erase(kVisible);
  if (!rank.devices.empty())
    put(rank.env, "DEVICE_ID", std::to_string(rank.devices.front()), kSource);
}

// Sets the variables that msrun exports for a worker and for the scheduler.
void put_cluster(const LaunchRequest& request, Environment& env, const std::string& world) {
  put(env, "MS_WORKER_NUM", world, kSource);
  put(env, "MS_SCHED_HOST", request.nodes.front().address, kSource);
  put(env, "MS_SCHED_PORT", std::to_string(request.master_port), kSource);
  put_default(env, "MS_CLUSTER_TIMEOUT", "600", kSource);  // msrun's own default, seconds
}

// The scheduler's output is outside rank 0's tree, because MindFormers takes a process without
// RANK_ID for rank 0.
void add_scheduler(Launching& launching, const RankPlan& first, const std::string& world) {
  const LaunchRequest& request = launching.request;
  AuxiliaryDraft scheduler{.plan = {.name = "scheduler", .node = first.node, .env = first.env},
                           .command = launching.command};
  scheduler.cwd = literal(fmt::format("{}/scheduler", work_dir(request.out_dir, request.attempt)));
  set_option(scheduler.command, "--output_dir", scheduler.cwd, kSource);
  Environment& env = scheduler.plan.env;
  for (const char* name :
       {"MUSTER_RANK", "MUSTER_LOCAL_RANK", "RANK_ID", "MS_NODE_ID", "MS_WORKER_IP"})
    env.erase(name);
  put_cluster(request, env, world);
  put(env, "MS_ROLE", "MS_SCHED", kSource);
  put(env, "LOCAL_DEFAULT_PATH",
      fmt::format("{}/scheduler", work_dir(request.out_dir, request.attempt)), kSource);
  launching.auxiliaries.push_back(std::move(scheduler));
}

void launch_msrun(Launching& launching, const std::string& world) {
  const LaunchRequest& request = launching.request;
  for (const PlacedNode& node : request.nodes) {
    if (request.imagined || node.rank_count == 0 || ranktable::parse_address(node.address))
      continue;
    launching.problems.push_back(
        {.key = "launch.launcher",
         .message = fmt::format("msrun's variables need addresses, and that of node '{}' is the "
                                "name '{}'; start its agent with an address",
                                node.node.str(), node.address)});
    return;
  }
  for (RankPlan& rank : launching.plan.ranks) {
    put_cluster(request, rank.env, world);
    put(rank.env, "MS_ROLE", "MS_WORKER", kSource);
    // a whole number fixes the rank
    put(rank.env, "MS_NODE_ID", std::to_string(rank.rank), kSource);
    if (request.nodes.size() > 1)
      put_default(rank.env, "MS_WORKER_IP", request.nodes[rank.node].address, kSource);
    put_hccl_address(request, rank, kSource);
  }
  if (!launching.plan.ranks.empty() && launching.plan.ranks.front().rank == 0)
    add_scheduler(launching, launching.plan.ranks.front(), world);
}

void launch_table(Launching& launching) {
  plan_rank_table(launching);
  const std::string name = rank_table_name(launching.request);
  for (RankPlan& rank : launching.plan.ranks) {
    put_device(rank);
    put(rank.env, "RANK_TABLE_FILE", rank_table_path(launching.request, rank.node, name), kSource);
  }
}

std::string key_of(const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  return option ? command[option->word].key : "launch.args";
}

void check_arguments(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  const bool config = has_option(command, "--config");
  if (spec.launch().config().empty() && !config)
    problems.push_back({.key = "launch.config",
                        .message = "is missing: run_mindformer.py does not start without a "
                                   "configuration (a path below the code directory)"});
  if (!spec.launch().config().empty() && config)
    problems.push_back(
        {.key = key_of(command, "--config"),
         .message = "launch.config says already which configuration; leave one of the two out"});
  const auto mode = find_option(command, "--run_mode");
  const bool of_finetune = is_strategy(spec) && mode && mode->value == "finetune";
  if (mode && mode->value.find('$') == std::string_view::npos && mode->value != mode_word(spec) &&
      !of_finetune)
    problems.push_back(
        {.key = command[mode->word].key,
         .message =
             fmt::format("--run_mode '{}' is not launch.mode, '{}': say it once, with launch.mode",
                         ranktable::shown(mode->value), mode_word(spec))});
  const auto parallel = find_option(command, "--use_parallel");
  if (is_false(parallel) && ranks_asked(spec) > 1)
    problems.push_back(
        {.key = command[parallel->word].key,
         .message = fmt::format("--use_parallel False with {} ranks: each would train alone, on "
                                "the same device; leave it out, or ask for one device",
                                ranks_asked(spec))});
  if (is_true(parallel) && ranks_asked(spec) == 1)
    problems.push_back(
        {.key = command[parallel->word].key,
         .message = "--use_parallel True with one rank is refused by MindSpore; leave it out"});
  if (is_true(find_option(command, "--only_save_strategy")) && !is_strategy(spec))
    problems.push_back({.key = key_of(command, "--only_save_strategy"),
                        .message = "ends with status 0 and no step trained: write launch.mode: "
                                   "strategy in its place, which looks for every rank's file"});
  if (is_strategy(spec) && ranks_asked(spec) == 1)
    problems.push_back({.key = "launch.mode",
                        .message = "strategy with one rank: a model that is not split has none; "
                                   "ask for as many devices as are to train it"});
}

// run_mindformer.py copies from and to object storage only where it finds ModelArts' variables.
// Elsewhere it copies nothing, and says nothing.
void check_no_object_storage(const CommandLine& command, Problems& problems) {
  constexpr std::array<std::string_view, 2> kSchemes = {"obs://", "s3://"};
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string_view word = command[i].text;
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view value =
        equals == std::string_view::npos ? word : word.substr(equals + 1);
    if (std::ranges::none_of(kSchemes,
                             [&](std::string_view scheme) { return value.starts_with(scheme); }))
      continue;
    std::string_view name = word.substr(0, equals == std::string_view::npos ? 0 : equals);
    if (name.empty() && i > 0 && command[i - 1].text.starts_with("--")) name = command[i - 1].text;
    problems.push_back(
        {.key = command[i].key,
         .message = fmt::format(
             "{}{}'{}' is in object storage: outside ModelArts run_mindformer.py copies nothing "
             "from or to it; write inputs: {{data: URL}} and ${{inputs.data}} here, so that muster "
             "fetches it",
             ranktable::shown(name), name.empty() ? "" : " ", ranktable::shown(value))});
  }
}

// Only one argument may load what spec.start gives.
void check_start_alone(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  if (!has_start(spec) || names_start_dir(spec)) return;
  if (const auto load = find_option(command, "--load_checkpoint"))
    problems.push_back(
        {.key = command[load->word].key,
         .message = "start.from says already what is loaded; leave one of the two out"});
  if (starts_as_weights(spec) && is_true(find_option(command, "--resume_training")))
    problems.push_back({.key = key_of(command, "--resume_training"),
                        .message = "goes on from a checkpoint, and start.as: weights begins anew "
                                   "with its weights; write start.as: resume, or leave it out"});
}

// Refuses weights, and directories that only look like a resumable checkpoint. r0.6 to r0.8 load a
// rank's part of a checkpoint only in sink mode.
void check_resumable(const v1::JobSpec& spec, const CommandLine& command, Problems& problems) {
  if (!asks_for_training(spec)) return;
  const auto load = find_option(command, "--load_checkpoint");
  if (load && is_true(find_option(command, "--resume_training")))
    if (const std::string wrong = resume_problem(load->value); !wrong.empty())
      problems.push_back({.key = command[load->word].key,
                          .message = fmt::format("{}; or leave --resume_training out", wrong)});
  if (spec.resume().enabled() && ranks_asked(spec) > 1 &&
      is_false(find_option(command, "--sink_mode")))
    problems.push_back({.key = key_of(command, "--sink_mode"),
                        .message = "without sink mode a later attempt cannot load the ranks' parts "
                                   "of a checkpoint; leave it out, or start every attempt from the "
                                   "beginning with resume: none"});
  const bool profiles = spec.observe().has_profile();
  if (spec.resume().enabled() && ranks_asked(spec) > 1 &&
      (profiles || is_true(find_option(command, "--profile"))))
    problems.push_back(
        {.key = profiles ? "observe.profile" : key_of(command, "--profile"),
         .message = "a profile turns sink mode off (up to MindFormers r1.1), and without it a "
                    "later attempt cannot load the ranks' parts of a checkpoint; start every "
                    "attempt from the beginning with resume: none"});
}

void check_launcher(const v1::JobSpec& spec, Problems& problems) {
  const std::uint64_t ranks = ranks_asked(spec);
  if (ranks == 1) return;
  const v1::ResourceSpec& resources = spec.resources();
  if (spec.launch().launcher() == v1::LAUNCHER_MSRUN) {
    check_ascending(spec, problems);
    if (spec.network().master_port() != 0 && spec.network().master_port() < 1024)
      problems.push_back(
          {.key = "network.master_port",
           .message = fmt::format("{} is refused by MindSpore's scheduler (auto | 1024..65535)",
                                  spec.network().master_port())});
    return;
  }
  constexpr std::uint32_t kDevicesMax = 16;
  if (resources.type() == "nvidia")
    problems.push_back(
        {.key = "resources.type",
         .message = "a rank table is for Ascend devices; use launch.launcher: msrun"});
  if (ranks > ranktable::kRanksMax)
    problems.push_back({.key = "resources.nodes",
                        .message = fmt::format(
                            "{} ranks, and a rank table has at most {}; use launch.launcher: msrun",
                            ranks, ranktable::kRanksMax)});
  if (resources.devices() > kDevicesMax)
    problems.push_back(
        {.key = "resources.devices",
         .message = fmt::format("{} devices a node, and HCCL knows servers of up to {}",
                                resources.devices(), kDevicesMax)});
  for (int i = 0; i < resources.device_ids_size(); ++i)
    if (resources.device_ids(i) >= kDevicesMax)
      problems.push_back(
          {.key = fmt::format("resources.devices[{}]", i),
           .message = fmt::format("{} is no device of a rank table: HCCL knows servers of up to {}",
                                  resources.device_ids(i), kDevicesMax)});
  if (std::string wrong = ranktable::path_problem(spec.output_dir() + "/hccl.json");
      !spec.output_dir().empty() && !wrong.empty())
    problems.push_back(
        {.key = "outputs.dir", .message = fmt::format("the rank table goes below it: {}", wrong)});
}

}  // namespace

std::span<const std::string_view> mindformers_identity() { return kIdentity; }
std::span<const std::string_view> mindformers_cloud() { return kCloud; }

LaunchSigns mindformers_signs() {
  return {.launchers = kLaunchers,
          .rank_variables = kRankVariables,
          .config_option = "--config",
          .mode_option = "--run_mode",
          .rank_cwd = true};
}

void launch_mindformers(Launching& launching) {
  const LaunchRequest& request = launching.request;
  const std::string world = std::to_string(request.world_size());
  // A command that muster does not know may name its files relative to the code tree.
  const bool own_directory =
      request.spec->launch().run().empty() || is_known_command(*request.spec, launching.command);
  if (request.spec->launch().cwd().empty() && own_directory)
    launching.cwd = literal(work_dir(request.out_dir, request.attempt)) + "/rank_${rank}";
  set_arguments(launching);
  put_common(request, launching.plan, world);
  if (has_rank_table(request))
    launch_table(launching);
  else if (request.world_size() > 1)
    launch_msrun(launching, world);
  else
    for (RankPlan& rank : launching.plan.ranks) put_device(rank);
}

// Decided by --output_dir. Every command gets LOCAL_DEFAULT_PATH, but newer releases ignore it.
bool mindformers_sets_save_dir(const v1::JobSpec& spec) {
  return is_known_command(spec, spec_words(spec));
}

// Decided by --load_checkpoint. For a node's script the launcher shim changes the arguments of its
// msrun call.
bool mindformers_loads_start(const v1::JobSpec& spec) {
  return spec.launch().per() == v1::LAUNCH_PER_NODE ? spec.launch().intercept()
                                                    : is_known_command(spec, spec_words(spec));
}

bool mindformers_has_scheduler(const v1::JobSpec& spec) {
  return ranks_asked(spec) != 1 && spec.launch().launcher() == v1::LAUNCHER_MSRUN;
}

void check_mindformers(const v1::JobSpec& spec, Problems& problems) {
  const CommandLine command = spec_words(spec);
  if (is_known_command(spec, command)) {
    check_arguments(spec, command, problems);
    check_no_object_storage(command, problems);
    check_resumable(spec, command, problems);
    check_start_alone(spec, command, problems);
  } else if (!spec.launch().config().empty() && !spec.launch().run().empty()) {
    problems.push_back({.key = "launch.config",
                        .message = "launch.run does not name run_mindformer.py, so nobody would "
                                   "read it; name the configuration in launch.run"});
  }
  check_launcher(spec, problems);
  check_no_launcher_inside(spec, problems);
  check_hccl_variables(spec, problems);
}

// Does what launch_mindformers() does for a rank's own command line.
ArgumentEdits intercepted_mindformers(const LaunchRequest& request) {
  using enum ArgumentEdit::Kind;
  ArgumentEdits edits = {
      {.kind = OnlyScript, .value = "run_mindformer.py"},
      {.kind = Put, .option = "--output_dir", .value = request.save_dir},
  };
  if (!request.resuming() && !request.start_dir.empty() && !names_start_dir(*request.spec))
    edits.push_back({.kind = Put, .option = "--load_checkpoint", .value = request.start_dir});
  if (!request.resuming() || !asks_for_training(*request.spec)) return edits;
  edits.push_back({.kind = Put, .option = "--load_checkpoint", .value = request.resume_dir});
  edits.push_back({.kind = Put, .option = "--resume_training", .value = "True"});
  edits.push_back({.kind = Put, .option = "--auto_trans_ckpt", .value = "False"});
  edits.push_back({.kind = DropValue, .option = "--src_strategy_path_or_dir"});
  return edits;
}

bool mindformers_by_table(const v1::JobSpec& spec) {
  return spec.launch().launcher() != v1::LAUNCHER_MSRUN;
}

void put_mindformers_script(const LaunchRequest& request, RankPlan& rank) {
  constexpr const char* kScriptSource = "launch.per: node";
  put_hccl_address(request, rank, kScriptSource);
  put(rank.env, "LOCAL_DEFAULT_PATH", request.save_dir, kScriptSource);
}

}  // namespace muster::engine
