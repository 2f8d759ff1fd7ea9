// observe.profile and observe.dump with MindFormers.
//
// Profile:
// --profile True, and as pairs of configuration keys, which every release from r0.6
// on takes, --profile_start_step, --profile_stop_step and --profile_rank_ids (r1.3
// and later use the last one; earlier releases profile every rank). It is written
// to profile/rank_N below the output root, ${save.dir}. Up to r1.1 a profile turns
// sink mode off, and without sink mode the ranks' parts of a checkpoint cannot be
// loaded again.
//
// Dump:
// MindSpore's dump, controlled by the file that MINDSPORE_DUMP_CONFIG names. Each
// rank has rank_N below common_dump_settings.path of this file. muster sets the
// path to ${out}/dump/attempt-N. MindSpore accepts only letters, digits, '-', '_'
// and '/' in this path. If ${out} has others, the path becomes
// PATH/JOB_ID/attempt-N with the PATH in the file. There is no dump in PyNative
// mode (--mode 1).
//
// Sources: mindspore-lab/mindformers mindformers/core/context/build_context.py (r0.6-r1.0),
// mindformers/trainer/trainer.py (r1.1 to master), mindformers/core/callback/callback.py
// (ProfileMonitor), run_mindformer.py; mindspore-ai/mindspore
// mindspore/ccsrc/debug/data_dump/dump_json_parser.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "common/digest/sha256.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/observing.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

using ranktable::Json;
using ranktable::shown;

constexpr const char* kDump = "observe.dump";
constexpr const char* kDumpVariable = "MINDSPORE_DUMP_CONFIG";
constexpr std::string_view kSettings = "common_dump_settings";
constexpr std::size_t kDumpNameMax = 4096;  // PATH_MAX

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

std::unexpected<Error> wrong_dump(const v1::DumpSpec& dump, std::string_view why) {
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
    return wrong_dump(
        dump, fmt::format("it has {} bytes, at most {}", dump.config().size(), kDumpBytesMax));
  auto tree = ranktable::read_json(dump.config());
  if (!tree) return wrong_dump(dump, tree.error().message);
  Json* settings = tree->is(Json::Kind::Object) ? value_of(*tree, kSettings) : nullptr;
  if (settings == nullptr || !settings->is(Json::Kind::Object))
    return wrong_dump(dump,
                      fmt::format("it has no map '{}', which MindSpore's dump goes by (net_name, "
                                  "iteration, input_output, kernels, ...)",
                                  kSettings));
  // Every release refuses to start without these keys.
  for (const std::string_view key : std::array<std::string_view, 2>{"net_name", "iteration"}) {
    const Json* value = value_of(*settings, key);
    if (value == nullptr)
      return wrong_dump(
          dump,
          fmt::format("{}.{} is missing, without which MindSpore does not start", kSettings, key));
    if (!value->is(Json::Kind::String) || value->text.empty())
      return wrong_dump(dump, fmt::format("{}.{} must be a text{}", kSettings, key,
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

}  // namespace

void put_mindformers_profile(Launching& launching) {
  CommandLine& command = launching.command;
  const v1::ProfileSpec& profile = launching.request.spec->observe().profile();
  add_profile_option(command, "--profile", "True");
  if (profile.start() != 0)
    add_profile_option(command, "--profile_start_step", std::to_string(profile.start()));
  if (profile.stop() != 0)
    add_profile_option(command, "--profile_stop_step", std::to_string(profile.stop()));
  if (!profile.ranks().empty())
    add_profile_option(command, "--profile_rank_ids",
                       fmt::format("[{}]", fmt::join(profile.ranks(), ",")));
}

void check_mindformers_profile(const v1::JobSpec& spec, Problems& problems) {
  constexpr std::array<std::string_view, 4> kOptions = {
      "--profile", "--profile_start_step", "--profile_stop_step", "--profile_rank_ids"};
  if (!mindformers_sets_save_dir(spec))
    return problems.push_back(
        {.key = "observe.profile",
         .message = "the command is not run_mindformer.py, whose option --profile is; leave it "
                    "out"});
  check_profile_given_once(spec_words(spec), kOptions, problems);
}

void put_mindformers_dump(Launching& launching) {
  const LaunchRequest& request = launching.request;
  const v1::JobSpec& spec = *request.spec;
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

void check_mindformers_dump(const v1::JobSpec& spec, Problems& problems) {
  for (const auto& [env, key] : {std::pair{&spec.runtime().env(), "runtime.env"},
                                 std::pair{&spec.resume().env(), "resume.env"}})
    if (env->contains(kDumpVariable))
      problems.push_back(
          {.key = fmt::format("{}.{}", key, kDumpVariable),
           .message = "names the dump's file, and so does observe.dump; leave one of the two out"});
}

}  // namespace muster::engine
