// observe.profile and observe.dump: command lines, copies, the dump's file, and what is refused.
// And what a configuration must not contain.
#include "common/engine/model/observing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/mindformers/config_checks.h"
#include "common/engine/patch_plan.h"
#include "common/engine/ranktable/json_tree.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr const char* kDumpJson =
    R"({"common_dump_settings": {"dump_mode": 0, "path": "/absolute_path", "net_name": "llama", "iteration": "0|5-8", "kernels": ["a"]},
 "e2e_dump_settings": {"enable": true}})";

v1::JobSpec profiled(const char* engine, const Words& args = {}, std::uint32_t start = 0,
                     std::uint32_t stop = 0, const std::vector<std::uint32_t>& ranks = {}) {
  auto spec = spec_of(engine, args);
  if (engine == std::string_view("mindformers")) spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_resume()->set_enabled(false);
  v1::ProfileSpec& profile = *spec.mutable_observe()->mutable_profile();
  profile.set_start(start);
  profile.set_stop(stop);
  for (const std::uint32_t rank : ranks) profile.add_ranks(rank);
  return spec;
}

v1::JobSpec dumped(const std::string& json = kDumpJson, const char* engine = "mindformers") {
  auto spec = spec_of(engine, {});
  if (engine == std::string_view("mindformers")) spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_observe()->mutable_dump()->set_name("dump.json");
  spec.mutable_observe()->mutable_dump()->set_config(json);
  return spec;
}

LaunchPlan observed_plan(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : LaunchPlan{};
}

// The words of rank 0 that come from observe.profile.
Words profile_words(const LaunchPlan& plan) {
  Words words;
  for (std::size_t i = 0; i < plan.argv_sources.size(); ++i)
    if (plan.argv_sources[i] == "observe.profile") words.push_back(plan.ranks.front().argv[i]);
  return words;
}

std::string observed_refusal(const LaunchRequest& request) {
  const auto plan = plan_launch(request);
  return plan ? "planned" : plan.error().message;
}

// --- profile

TEST(Profile, MindFormersTakesItAsItsOwnOptionAndPairsOfConfigurationKeys) {
  const auto plain = profiled("mindformers");
  EXPECT_THAT(profile_words(observed_plan(request_of(plain))), ElementsAre("--profile", "True"));
  const auto spec = profiled("mindformers", {}, 5, 8, {0, 3});
  EXPECT_THAT(profile_words(observed_plan(request_of(spec))),
              ElementsAre("--profile", "True", "--profile_start_step", "5", "--profile_stop_step",
                          "8", "--profile_rank_ids", "[0,3]"));
  EXPECT_EQ(problem_text(spec), "");
}

TEST(Profile, MegatronSaysNothingOfAPlaceWhereItHasNone) {
  auto spec = profiled("megatron", {"--save", "/x", "--save-interval", "5"}, 5, 8, {0, 3});
  spec.mutable_resources()->set_type("nvidia");
  EXPECT_THAT(profile_words(observed_plan(request_of(spec))),
              ElementsAre("--profile", "--profile-step-start", "5", "--profile-step-end", "8",
                          "--profile-ranks", "0", "3"));
  // PyTorch's own profiler writes to TensorBoard's directory, and does not start without it.
  spec.mutable_launch()->add_args("--use-pytorch-profiler");
  auto request = request_of(spec);
  request.attempt = 3;
  EXPECT_THAT(profile_words(observed_plan(request)),
              testing::IsSupersetOf({"--tensorboard-dir", "/out/j/profile/attempt-3/tensorboard"}));
  spec.mutable_launch()->add_args("--tensorboard-dir=/tb");
  EXPECT_THAT(profile_words(observed_plan(request)),
              testing::Not(testing::Contains("--tensorboard-dir")));
  EXPECT_EQ(problem_text(spec), "");
}

TEST(Profile, OnAscendMegatronIsMindSpeeds) {
  auto spec = profiled("megatron");
  EXPECT_THAT(profile_words(observed_plan(request_of(spec))),
              ElementsAre("--profile", "--profile-save-path", "/out/j/profile/attempt-1"));
  spec.mutable_resources()->set_type("auto");
  auto request = request_of(spec);
  for (PlacedNode& node : request.nodes) node.device_type = "ascend910b";
  EXPECT_THAT(profile_words(observed_plan(request)),
              ElementsAre("--profile", "--profile-save-path", "/out/j/profile/attempt-1"));
  spec.mutable_launch()->add_args("--profile-save-path=/mine");
  EXPECT_THAT(profile_words(observed_plan(request)), ElementsAre("--profile"));
}

TEST(Profile, MindSpeedMmIsConfiguredByItsToolFile) {
  const auto spec = profiled("mindspeed-mm", {"--mm-tool", "mm/tools.json"}, 10, 12, {0});
  EXPECT_EQ(problem_text(spec), "");
  EXPECT_TRUE(patches_files(spec));
  const LaunchPlan plan = observed_plan(request_of(spec));
  // the word that names the copy
  EXPECT_THAT(profile_words(plan),
              ElementsAre("/out/j/work/attempt-1/patched/node-0/0/tools.json"));
  ASSERT_FALSE(plan.patched.empty());
  const PatchPlan& copy = plan.patched.front();
  EXPECT_EQ(copy.source, "/srv/mm/tools.json");
  EXPECT_EQ(copy.key, "observe.profile");
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"profile.enable", "true"},
      {"profile.profile_type", "static"},
      {"profile.ranks", "[0]"},
      {"profile.static_param.start_step", "10"},
      {"profile.static_param.end_step", "12"},
      {"profile.static_param.save_path", "'/out/j/profile/attempt-1'"}};
  EXPECT_THAT(copy.items, ElementsAreArray(wanted));
}

TEST(Profile, AddsToWhatElseIsChangedInTheToolFile) {
  auto spec = profiled("mindspeed-mm", {"--mm-tool", "./mm/tools.json"});
  v1::ConfigPatch& patch = *spec.mutable_launch()->add_patch();
  patch.set_file("mm/tools.json");
  v1::ConfigChange& change = *patch.add_changes();
  change.set_at("profile.static_param.level");
  change.set_value("level0");
  const LaunchPlan plan = observed_plan(request_of(spec));
  ASSERT_FALSE(plan.patched.empty());
  EXPECT_EQ(plan.patched.front().items.size(), 4U);
  EXPECT_EQ(plan.patched.front().items.front().first, "profile.static_param.level");
}

TEST(Profile, OffAddsNothing) {
  for (const char* engine : {"mindformers", "megatron", "mindspeed-mm", "torch", "deepspeed"}) {
    const auto spec = spec_of(engine, {"--mm-tool", "a.json"});
    EXPECT_THAT(profile_words(observed_plan(request_of(spec))), IsEmpty()) << engine;
    EXPECT_FALSE(profile_patch(spec)) << engine;
  }
}

TEST(Profile, WhatNoEngineWouldRecordIsRefused) {
  EXPECT_THAT(problem_text(profiled("torch")),
              HasSubstr("observe.profile: is for engines mindformers, megatron and mindspeed-mm"));
  EXPECT_THAT(problem_text(profiled("command")),
              HasSubstr("with command the program itself has to record one"));
  EXPECT_THAT(problem_text(profiled("mindspeed-mm")),
              HasSubstr("observe.profile: needs a file behind --mm-tool in launch.args"));
  EXPECT_THAT(problem_text(profiled("mindformers", {}, 5)),
              HasSubstr("observe.profile.stop: is missing"));
  EXPECT_THAT(problem_text(profiled("mindformers", {}, 0, 5)),
              HasSubstr("observe.profile.start: is missing"));
  EXPECT_THAT(problem_text(profiled("mindformers", {}, 5, 4)),
              HasSubstr("observe.profile.stop: 4 is before start, 5"));
  EXPECT_EQ(problem_text(profiled("mindformers", {}, 5, 5)), "");
  EXPECT_THAT(problem_text(profiled("megatron", {}, 5, 5)),
              HasSubstr("observe.profile.stop: 5 is start: megatron records what is behind start, "
                        "up to stop; give at least 6"));
  EXPECT_THAT(problem_text(profiled("megatron", {}, 0, 0, {1, 4})),
              HasSubstr("observe.profile.ranks[1]: there is no rank 4: the job has 0..3"));
  EXPECT_THAT(problem_text(profiled("megatron", {}, 0, 0, {1, 1})),
              HasSubstr("observe.profile.ranks[1]: rank 1 is there twice"));
  EXPECT_THAT(
      problem_text(profiled("megatron", {"--profile-ranks", "0"})),
      HasSubstr("launch.args[0]: --profile-ranks: observe.profile says already what is profiled"));
  EXPECT_THAT(problem_text(profiled("mindformers", {"--profile_stop_step", "4"})),
              HasSubstr("launch.args[0]: --profile_stop_step: observe.profile says already"));
  auto node = profiled("megatron");
  node.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  EXPECT_THAT(problem_text(node),
              HasSubstr("observe.profile: is for ranks that muster starts, and with "
                        "launch.per: node the script does"));
  auto other = profiled("mindformers");
  other.mutable_launch()->clear_script();
  other.mutable_launch()->clear_config();
  for (const char* word : {"python", "finetune.py"}) other.mutable_launch()->add_run(word);
  EXPECT_THAT(problem_text(other),
              HasSubstr("observe.profile: the command is not run_mindformer.py"));
  auto shell = profiled("megatron");
  shell.mutable_launch()->clear_script();
  for (const char* word : {"bash", "train.sh"}) shell.mutable_launch()->add_run(word);
  EXPECT_THAT(problem_text(shell),
              HasSubstr("observe.profile: no word of launch.run is a Python script"));
}

TEST(Profile, OfSeveralMindFormersRanksCannotGoOn) {
  auto spec = profiled("mindformers");
  spec.mutable_resume()->set_enabled(true);
  EXPECT_THAT(
      problem_text(spec),
      HasSubstr("observe.profile: a profile turns sink mode off (up to MindFormers r1.1), and "
                "without it a later attempt cannot load the ranks' parts of a checkpoint; start "
                "every attempt from the beginning with resume: none"));
  spec.mutable_observe()->clear_profile();
  spec.mutable_launch()->add_args("--profile");
  spec.mutable_launch()->add_args("True");
  EXPECT_THAT(problem_text(spec), HasSubstr("launch.args[0]: a profile turns sink mode off"));
  auto one = spec_of("mindformers", {}, 1, 1);
  one.mutable_launch()->set_config("a.yaml");
  one.mutable_observe()->mutable_profile();
  EXPECT_EQ(problem_text(one), "");
}

// --- dump

TEST(Dump, IsAFileOnEveryNodeThatSendsEachAttemptElsewhere) {
  const auto spec = dumped();
  EXPECT_EQ(problem_text(spec), "");
  auto request = request_of(spec);
  request.attempt = 2;
  const LaunchPlan plan = observed_plan(request);
  Words paths;
  for (const FilePlan& file : plan.files) {
    if (file.source != "observe.dump") continue;
    paths.push_back(file.path);
    const auto tree = ranktable::read_json(*file.content);
    ASSERT_TRUE(tree);
    EXPECT_EQ(tree->get("common_dump_settings")->get("path")->text, "/out/j/dump/attempt-2");
    EXPECT_EQ(tree->get("common_dump_settings")->get("iteration")->text, "0|5-8");
    EXPECT_EQ(tree->get("common_dump_settings")->get("dump_mode")->text, "0");
    EXPECT_EQ(tree->get("e2e_dump_settings")->get("enable")->text, "true");
  }
  EXPECT_THAT(paths, ElementsAre("/out/j/work/attempt-2/dump/node-0/data_dump.json",
                                 "/out/j/work/attempt-2/dump/node-1/data_dump.json"));
  EXPECT_EQ(env(plan.ranks[1], "MINDSPORE_DUMP_CONFIG"), paths[0]);
  EXPECT_EQ(env(plan.ranks[2], "MINDSPORE_DUMP_CONFIG"), paths[1]);
  EXPECT_EQ(plan.ranks[2].env.at("MINDSPORE_DUMP_CONFIG").source, "observe.dump");
}

TEST(Dump, OfMsrunsSchedulerThereIsNone) {
  auto spec = dumped();
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  const LaunchPlan plan = observed_plan(request_of(spec));
  ASSERT_EQ(plan.auxiliaries.size(), 1U);
  EXPECT_FALSE(plan.auxiliaries.front().env.contains("MINDSPORE_DUMP_CONFIG"));
  EXPECT_TRUE(plan.ranks.front().env.contains("MINDSPORE_DUMP_CONFIG"));
}

TEST(Dump, WhereMindSporeTakesNoSuchPathItsOwnIsTheBase) {
  const auto spec = dumped();
  auto request = request_of(spec);
  request.out_dir = "/home/ada/.local/out/j";
  request.save_dir = save_dir(spec, request.out_dir, 1);
  const LaunchPlan plan = observed_plan(request);
  const auto file = std::ranges::find(plan.files, "observe.dump", &FilePlan::source);
  ASSERT_NE(file, plan.files.end());
  EXPECT_THAT(*file->content, HasSubstr(R"("path": "/absolute_path/01j8x4a0b7c2d/attempt-1")"));
  const auto other = dumped(R"({"common_dump_settings": {"net_name": "x", "iteration": "0"}})");
  request.spec = &other;
  EXPECT_THAT(
      observed_refusal(request),
      HasSubstr("observe.dump: 'dump.json': it would go to "
                "'/home/ada/.local/out/j/dump/attempt-1', and MindSpore takes letters, digits, "
                "'-', '_' and '/' alone in that path; give common_dump_settings.path an absolute "
                "one of these"));
}

TEST(Dump, WhatMindSporeWouldNotStartWithIsRefused) {
  EXPECT_THAT(problem_text(dumped("{")), HasSubstr("observe.dump: 'dump.json': this is not JSON"));
  EXPECT_THAT(problem_text(dumped("[]")),
              HasSubstr("observe.dump: 'dump.json': it has no map 'common_dump_settings'"));
  EXPECT_THAT(problem_text(dumped(R"({"common_dump_settings": {"iteration": "0"}})")),
              HasSubstr("common_dump_settings.net_name is missing"));
  EXPECT_THAT(
      problem_text(dumped(R"({"common_dump_settings": {"net_name": "x", "iteration": 0}})")),
      HasSubstr(R"(common_dump_settings.iteration must be a text ("0|5-8", "all"))"));
  EXPECT_THAT(problem_text(dumped(std::string(kDumpBytesMax + 1, ' '))),
              HasSubstr("it has 65537 bytes, at most 65536"));
  EXPECT_THAT(problem_text(dumped(kDumpJson, "megatron")),
              HasSubstr("observe.dump: is MindSpore's, for engine mindformers; megatron has none"));
  auto twice = dumped();
  (*twice.mutable_runtime()->mutable_env())["MINDSPORE_DUMP_CONFIG"] = "/x.json";
  EXPECT_THAT(
      problem_text(twice),
      HasSubstr(
          "runtime.env.MINDSPORE_DUMP_CONFIG: names the dump's file, and so does observe.dump"));
}

// --- what a configuration must not contain

v1::JobSpec configured(const Words& args = {}) {
  auto spec = spec_of("mindformers", args);
  spec.mutable_launch()->set_config("configs/a.yaml");
  return spec;
}

// The keys that are read in a node's configuration.
Words read_values(const v1::JobSpec& spec) {
  Words result;
  for (const NeedPlan& file : observed_plan(request_of(spec)).needed)
    if (file.node == 1)
      for (const RefusedValue& refused : file.refused)
        result.push_back(file.source + " " + refused.at + (refused.value ? " true" : " false"));
  return result;
}

void add_change(v1::JobSpec& spec, const std::string& at, const std::string& value) {
  v1::ConfigPatch& patch = *spec.mutable_launch()->add_patch();
  patch.set_file("./configs/a.yaml");
  v1::ConfigChange& one = *patch.add_changes();
  one.set_at(at);
  one.set_value(value);
}

TEST(ConfigChecks, SinkModeIsReadWhereAResumeNeedsIt) {
  EXPECT_THAT(read_values(configured()),
              ElementsAre("/srv/configs/a.yaml runner_config.sink_mode false"));
  EXPECT_THAT(read_values(configured({"--sink_mode", "True"})), IsEmpty())
      << "the command line counts";
  EXPECT_THAT(read_values(configured({"--options", "runner_config.sink_mode=True"})), IsEmpty());
  EXPECT_THAT(read_values(configured({"--runner_config.sink_mode", "True"})), IsEmpty());
  auto never = configured();
  never.mutable_resume()->set_enabled(false);
  EXPECT_THAT(read_values(never), IsEmpty());
  auto eval = configured();
  eval.mutable_launch()->set_mode(v1::LAUNCH_MODE_EVAL);
  EXPECT_THAT(read_values(eval), IsEmpty());
  auto one = spec_of("mindformers", {}, 1, 1);
  one.mutable_launch()->set_config("configs/a.yaml");
  EXPECT_THAT(refused_values(one), IsEmpty());
}

TEST(ConfigChecks, AnOrderHasTheRefusedValueWithItsReason) {
  const auto spec = configured();
  const LaunchRequest request = request_of(spec);
  const v1::NodeLaunch order = node_launch(request, observed_plan(request), 1);
  ASSERT_EQ(order.needed_size(), 2) << "the script, and the configuration";
  const v1::NeededFile& config = order.needed(1);
  EXPECT_EQ(config.source(), "/srv/configs/a.yaml");
  EXPECT_EQ(config.key(), "launch.config");
  ASSERT_EQ(config.refused_size(), 1);
  EXPECT_EQ(config.refused(0).at(), "runner_config.sink_mode");
  EXPECT_FALSE(config.refused(0).value());
  EXPECT_THAT(config.refused(0).because(),
              testing::StartsWith("without sink mode a later attempt cannot load"));
}

TEST(ConfigChecks, APatchOfThePlaceIsItsAnswer) {
  auto spec = configured();
  add_change(spec, "runner_config.epochs", "3");
  EXPECT_THAT(read_values(spec), ElementsAre("/srv/configs/a.yaml runner_config.sink_mode false"))
      << "in the file itself: the copy has only other epochs";
  add_change(spec, "runner_config.sink_mode", "True");
  EXPECT_THAT(read_values(spec), IsEmpty());
  EXPECT_EQ(problem_text(spec), "");
  add_change(spec, "runner_config.sink_mode", "False");  // the last change counts
  EXPECT_THAT(problem_text(spec),
              HasSubstr("launch.patch[2][0]: without sink mode a later attempt cannot "
                        "load the ranks' parts of a checkpoint"));
  auto whole = configured();
  add_change(whole, "runner_config", "{epochs: 2, sink_mode: True}");
  EXPECT_THAT(read_values(whole), IsEmpty());
}

TEST(ConfigChecks, TruthAsYamlWritesIt) {
  for (const char* word : {"False", "false", "FALSE", "no", "Off"})
    EXPECT_TRUE(says(word, false) && !says(word, true)) << word;
  for (const char* word : {"True", "yes", "ON"})
    EXPECT_TRUE(says(word, true) && !says(word, false)) << word;
  for (const char* word : {"", "0", "falsely", "null"})
    EXPECT_FALSE(says(word, true) || says(word, false)) << word;
}

}  // namespace
}  // namespace muster::engine
