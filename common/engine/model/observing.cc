#include "common/engine/model/observing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/model/arguments.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

using ranktable::Json;
using ranktable::shown;

constexpr const char* kProfile = "observe.profile";
constexpr const char* kDump = "observe.dump";
constexpr const char* kDumpVariable = "MINDSPORE_DUMP_CONFIG";
constexpr const char* kProfileDir = "${out}/profile/attempt-${attempt}";
constexpr std::string_view kSettings = "common_dump_settings";
constexpr std::size_t kDumpNameMax = 4096;  // PATH_MAX

constexpr std::array<std::string_view, 4> kMindformersOptions = {
    "--profile", "--profile_start_step", "--profile_stop_step", "--profile_rank_ids"};
constexpr std::array<std::string_view, 4> kMegatronOptions = {
    "--profile", "--profile-step-start", "--profile-step-end", "--profile-ranks"};

void add_option(CommandLine& command, std::string_view name, std::string value) {
  command.push_back({std::string(name), kProfile});
  command.push_back({std::move(value), kProfile});
}

void put_mindformers(CommandLine& command, const v1::ProfileSpec& profile) {
  add_option(command, "--profile", "True");
  if (profile.start() != 0)
    add_option(command, "--profile_start_step", std::to_string(profile.start()));
  if (profile.stop() != 0)
    add_option(command, "--profile_stop_step", std::to_string(profile.stop()));
  if (!profile.ranks().empty())
    add_option(command, "--profile_rank_ids", fmt::format("[{}]", fmt::join(profile.ranks(), ",")));
}

bool on_ascend(const LaunchRequest& request) {
  return std::ranges::all_of(request.nodes, [&](const NodeSlot& node) {
    return node.rank_count == 0 || is_ascend(device_type(request, node));
  });
}

void put_megatron(const LaunchRequest& request, CommandLine& command,
                  const v1::ProfileSpec& profile) {
  command.push_back({"--profile", kProfile});
  if (profile.start() != 0)
    add_option(command, "--profile-step-start", std::to_string(profile.start()));
  if (profile.stop() != 0)
    add_option(command, "--profile-step-end", std::to_string(profile.stop()));
  if (!profile.ranks().empty()) command.push_back({"--profile-ranks", kProfile});
  for (const std::uint32_t rank : profile.ranks())
    command.push_back({std::to_string(rank), kProfile});
  if (on_ascend(request)) {
    if (!has_option(command, "--profile-save-path"))
      add_option(command, "--profile-save-path", kProfileDir);
  } else if (has_option(command, "--use-pytorch-profiler") &&
             !has_option(command, "--tensorboard-dir")) {
    // main writes into ../torch_profile relative to this directory
    add_option(command, "--tensorboard-dir", fmt::format("{}/tensorboard", kProfileDir));
  }
}

std::string key_of(const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  return option ? command[option->word].key : "launch.args";
}

// --- the dump's file

bool is_dump_path(std::string_view path) {
  return std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '/';
  });
}

Json* value_of(Json& object, std::string_view key) {
  const auto found = std::ranges::find(object.keys, key);
  return found == object.keys.end()
             ? nullptr
             : &object.items[static_cast<std::size_t>(found - object.keys.begin())];
}

std::unexpected<Error> wrong(const v1::DumpSpec& dump, std::string_view why) {
  return fail(ErrorCode::InvalidArgument, fmt::format("'{}': {}", shown(dump.name()), why));
}

// The parsed file that controls MindSpore's dump.
struct DumpFile {
  Json tree;
  std::string path;  // the path in the file; empty: none
};

Result<DumpFile> read_dump(const v1::DumpSpec& dump) {
  if (dump.name().size() > kDumpNameMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("its name has {} bytes, at most {}", dump.name().size(), kDumpNameMax));
  if (dump.config().size() > kDumpBytesMax)
    return wrong(dump,
                 fmt::format("it has {} bytes, at most {}", dump.config().size(), kDumpBytesMax));
  auto tree = ranktable::read_json(dump.config());
  if (!tree) return wrong(dump, tree.error().message);
  Json* settings = tree->is(Json::Kind::Object) ? value_of(*tree, kSettings) : nullptr;
  if (settings == nullptr || !settings->is(Json::Kind::Object))
    return wrong(dump, fmt::format("it has no map '{}', which MindSpore's dump goes by (net_name, "
                                   "iteration, input_output, kernels, ...)",
                                   kSettings));
  // Every release refuses to start without these keys.
  for (const std::string_view key : std::array<std::string_view, 2>{"net_name", "iteration"}) {
    const Json* value = value_of(*settings, key);
    if (value == nullptr)
      return wrong(dump, fmt::format("{}.{} is missing, without which MindSpore does not start",
                                     kSettings, key));
    if (!value->is(Json::Kind::String) || value->text.empty())
      return wrong(dump, fmt::format("{}.{} must be a text{}", kSettings, key,
                                     key == "iteration" ? R"( ("0|5-8", "all"))" : ""));
  }
  const Json* path = value_of(*settings, "path");
  DumpFile file{.tree = {},
                .path = path != nullptr && path->is(Json::Kind::String) ? path->text : ""};
  file.tree = *std::move(tree);
  return file;
}

std::string text_with_path(DumpFile file, const std::string& path) {
  Json& settings = *value_of(file.tree, kSettings);
  Json value{.kind = Json::Kind::String, .text = path};
  if (Json* old = value_of(settings, "path")) {
    *old = std::move(value);
  } else {
    settings.keys.emplace_back("path");
    settings.items.push_back(std::move(value));
  }
  return ranktable::json_text(file.tree) + "\n";
}

// --- refusals

void check_steps(const v1::JobSpec& spec, Problems& problems) {
  const v1::ProfileSpec& profile = spec.observe().profile();
  const std::uint32_t start = profile.start(), stop = profile.stop();
  if ((start == 0) != (stop == 0))
    problems.push_back(
        {.key = start == 0 ? "observe.profile.start" : "observe.profile.stop",
         .message = fmt::format(
             "is missing (1..4294967295): {} alone would go with the engine's own default",
             start == 0 ? "stop" : "start")});
  else if (stop < start)
    problems.push_back({.key = "observe.profile.stop",
                        .message = fmt::format("{} is before start, {}", stop, start)});
  else if (stop == start && start != 0 && spec.engine() != "mindformers")
    problems.push_back(
        {.key = "observe.profile.stop",
         .message = fmt::format(
             "{} is start: {} records what is behind start, up to stop; give at least {}", stop,
             spec.engine(), start + 1)});
  std::set<std::uint32_t> seen;
  for (int i = 0; i < profile.ranks_size(); ++i) {
    const std::uint32_t rank = profile.ranks(i);
    const std::string key = fmt::format("observe.profile.ranks[{}]", i);
    if (rank >= ranks_asked(spec))
      return problems.push_back({.key = key,
                                 .message = fmt::format("there is no rank {}: the job has 0..{}",
                                                        rank, ranks_asked(spec) - 1)});
    if (!seen.insert(rank).second)
      return problems.push_back(
          {.key = key, .message = fmt::format("rank {} is there twice", rank)});
  }
}

void check_given_once(const CommandLine& command, std::span<const std::string_view> options,
                      Problems& problems) {
  for (const std::string_view name : options)
    if (has_option(command, name))
      return problems.push_back(
          {.key = key_of(command, name),
           .message = fmt::format(
               "{}: observe.profile says already what is profiled; leave one of the two out",
               name)});
}

void check_profile(const v1::JobSpec& spec, Problems& problems) {
  const std::string& engine = spec.engine();
  const auto refuse = [&](std::string message) {
    problems.push_back({.key = kProfile, .message = std::move(message)});
  };
  if (engine != "mindformers" && engine != "megatron" && engine != "mindspeed-mm")
    return refuse(
        fmt::format("is for engines mindformers, megatron and mindspeed-mm, which have options for "
                    "it; with {} the program itself has to record one: leave it out",
                    engine));
  if (spec.launch().per() == v1::LAUNCH_PER_NODE)
    return refuse(
        "is for ranks that muster starts, and with launch.per: node the script does; put the "
        "engine's own options into the script, and leave it out");
  check_steps(spec, problems);
  const CommandLine command = spec_words(spec);
  if (engine == "mindformers") {
    if (!mindformers_sets_save_dir(spec))
      return refuse(
          "the command is not run_mindformer.py, whose option --profile is; leave it out");
    return check_given_once(command, kMindformersOptions, problems);
  }
  if (engine == "mindspeed-mm") {
    if (!profile_patch(spec))
      refuse(
          "needs a file behind --mm-tool in launch.args: MindSpeed-MM reads from it what to "
          "profile; of the FSDP2 back end change the configuration with "
          "launch.patch, and leave it out");
    return;
  }
  const bool program = spec.launch().run().empty() ||
                       std::ranges::any_of(spec.launch().run(), [](const std::string& word) {
                         return word.ends_with(".py");
                       });
  if (!program)
    return refuse(
        "no word of launch.run is a Python script, whose option --profile would be; leave it out");
  check_given_once(command, kMegatronOptions, problems);
}

void check_dump(const v1::JobSpec& spec, Problems& problems) {
  if (spec.engine() != "mindformers")
    return problems.push_back(
        {.key = kDump,
         .message = fmt::format("is MindSpore's, for engine mindformers; {} has none: leave it out",
                                spec.engine())});
  for (const auto& [env, key] : {std::pair{&spec.runtime().env(), "runtime.env"},
                                 std::pair{&spec.resume().env(), "resume.env"}})
    if (env->contains(kDumpVariable))
      problems.push_back(
          {.key = fmt::format("{}.{}", key, kDumpVariable),
           .message = "names the dump's file, and so does observe.dump; leave one of the two out"});
}

}  // namespace

void put_profile(Launching& launching) {
  const v1::JobSpec& spec = *launching.request.spec;
  if (!spec.observe().has_profile()) return;
  if (spec.engine() == "mindformers") put_mindformers(launching.command, spec.observe().profile());
  if (spec.engine() == "megatron")
    put_megatron(launching.request, launching.command, spec.observe().profile());
}

std::optional<v1::ConfigPatch> profile_patch(const v1::JobSpec& spec) {
  if (spec.engine() != "mindspeed-mm" || !spec.observe().has_profile()) return std::nullopt;
  const CommandLine command = spec_words(spec);
  const auto file = find_option(command, "--mm-tool");
  if (!file || !file->has_value || file->value.empty()) return std::nullopt;
  const v1::ProfileSpec& profile = spec.observe().profile();
  v1::ConfigPatch patch;
  patch.set_file(std::string(file->value));
  const auto change = [&](const char* at, std::string value) {
    v1::ConfigChange& one = *patch.add_changes();
    one.set_at(at);
    one.set_value(std::move(value));
  };
  change("profile.enable", "true");
  change("profile.profile_type", "static");
  if (!profile.ranks().empty())
    change("profile.ranks", fmt::format("[{}]", fmt::join(profile.ranks(), ", ")));
  if (profile.start() != 0)
    change("profile.static_param.start_step", std::to_string(profile.start()));
  if (profile.stop() != 0) change("profile.static_param.end_step", std::to_string(profile.stop()));
  change("profile.static_param.save_path", fmt::format("'{}'", kProfileDir));
  return patch;
}

void put_dump(Launching& launching) {
  const LaunchRequest& request = launching.request;
  const v1::JobSpec& spec = *request.spec;
  if (!spec.observe().has_dump() || spec.engine() != "mindformers") return;
  const auto refuse = [&](std::string message) {
    launching.problems.push_back({.key = kDump, .message = std::move(message)});
  };
  auto file = read_dump(spec.observe().dump());
  if (!file) return refuse(file.error().message);
  std::string dir = fmt::format("{}/dump/attempt-{}", request.out_dir, request.attempt);
  if (!is_dump_path(dir)) {
    const std::string& own = file->path;
    if (!own.starts_with('/') || !is_dump_path(own))
      return refuse(
          fmt::format("'{}': it would go to '{}', and MindSpore takes letters, digits, '-', '_' "
                      "and '/' alone in that path; give {}.path an absolute one of these, below "
                      "which it will go",
                      shown(spec.observe().dump().name()), shown(dir), kSettings));
    dir = fmt::format("{}{}{}/attempt-{}", own, own.ends_with('/') ? "" : "/", request.job_id,
                      request.attempt);
  }
  const auto content = std::make_shared<const std::string>(text_with_path(*std::move(file), dir));
  const std::string hash = sha256_hex(*content);
  std::set<std::size_t> nodes;
  for (RankPlan& rank : launching.plan.ranks) {
    const std::string path = fmt::format("{}/dump/node-{}/data_dump.json",
                                         work_dir(request.out_dir, request.attempt), rank.node);
    if (nodes.insert(rank.node).second)
      launching.plan.files.push_back(
          {.node = rank.node, .path = path, .content = content, .sha256 = hash, .source = kDump});
    put(rank.env, kDumpVariable, path, kDump);
  }
}

void check_observing(const v1::JobSpec& spec, Problems& problems) {
  if (find_engine(spec.engine()) == nullptr) return;
  if (spec.observe().has_profile()) check_profile(spec, problems);
  if (spec.observe().has_dump()) check_dump(spec, problems);
}

}  // namespace muster::engine
