// What a job begins with that it did not make: weights and checkpoints of other jobs (start), their
// files (inputs), directories of other stages.
#include "common/engine/model/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/megatron/megatron.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/compat/arguments/edits.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

v1::JobSpec starting(const char* engine, const Words& given, v1::StartAs as = v1::START_AS_WEIGHTS,
                     const std::string& from = "/data/base") {
  auto spec = spec_of(engine, given);
  spec.mutable_start()->set_from(from);
  spec.mutable_start()->set_as(as);
  return spec;
}

// With the weights of the start; with a checkpoint of its own; or resuming from the start's
// checkpoint.
enum class Begins : std::uint8_t { Weights, Own, StartPoint };
LaunchRequest begun(const v1::JobSpec& spec, Begins how) {
  auto request = request_of(spec);
  if (how == Begins::Weights) {
    request.start_dir = spec.start().from();
    return request;
  }
  resume_at(request, 40);
  if (how == Begins::Own) return request;
  request.resume_from_start = true;
  request.resume_source = spec.start().from();
  return request;
}

// The arguments after `python3 -u SCRIPT`.
Words arguments(const v1::JobSpec& spec, Begins how, Words* sources = nullptr) {
  const auto plan = plan_launch(begun(spec, how));
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return {};
  EXPECT_EQ(plan->argv_sources.size(), plan->ranks[0].argv.size());
  if (sources != nullptr) *sources = {plan->argv_sources.begin() + 3, plan->argv_sources.end()};
  return {plan->ranks[0].argv.begin() + 3, plan->ranks[0].argv.end()};
}

TEST(Start, MegatronLoadsWeightsAloneAndBeginsAtIterationNought) {
  const std::string save1 = "/out/j/checkpoints/attempt-1", save2 = "/out/j/checkpoints/attempt-2",
                    links = "/out/j/resume/attempt-2";
  for (const char* engine : {"megatron", "mindspeed-mm"}) {
    const auto spec =
        starting(engine, {"--load", "/mine", "--save", "/x", "--ckpt-step", "7", "--finetune"});
    EXPECT_EQ(problem_text(spec), "");
    Words sources;
    EXPECT_THAT(arguments(spec, Begins::Weights, &sources),
                ElementsAre("--load", "/data/base", "--save", save1, "--finetune",
                            "--no-load-optim", "--no-load-rng"));
    EXPECT_EQ(sources[1], "start.from");
    EXPECT_EQ(sources[5], "start.from");
    EXPECT_EQ(sources[4], "launch.args[6]") << "the user's own word stays";
    EXPECT_THAT(arguments(spec, Begins::Own), ElementsAre("--load", links, "--save", save2))
        << "a checkpoint of its own wins";
    EXPECT_THAT(arguments(starting(engine, {"--save", "/x"}), Begins::Weights),
                ElementsAre("--save", save1, "--load", "/data/base", "--finetune",
                            "--no-load-optim", "--no-load-rng"));
    EXPECT_THAT(
        arguments(starting(engine, {"--load", "${start.dir}", "--save", "/x"}), Begins::Weights),
        ElementsAre("--load", "/data/base", "--save", save1, "--finetune", "--no-load-optim",
                    "--no-load-rng"));
  }
}

TEST(Start, AsResumeTheEnginesOwnArgumentsHold) {
  Words sources;
  EXPECT_THAT(
      arguments(starting("megatron", {"--save", "/x"}, v1::START_AS_RESUME), Begins::StartPoint,
                &sources),
      ElementsAre("--save", "/out/j/checkpoints/attempt-2", "--load", "/out/j/resume/attempt-2"));
  EXPECT_EQ(sources.back(), "start.from");
  auto spec = starting("mindformers", {}, v1::START_AS_RESUME_OR_SCRATCH);
  spec.mutable_launch()->set_config("run.yaml");
  const Words words = arguments(spec, Begins::StartPoint, &sources);
  EXPECT_THAT(words, Contains("--resume_training"));
  const auto load = std::ranges::find(words, "--load_checkpoint") - words.begin();
  EXPECT_EQ(words.at(load + 1), "/out/j/resume/attempt-2");
  EXPECT_EQ(sources.at(load + 1), "start.from");
}

TEST(Start, MindFormersLoadsWeightsWithoutResuming) {
  auto spec = starting("mindformers", {"--train_dataset", "/d"});
  spec.mutable_launch()->set_config("run.yaml");
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_FINETUNE);
  EXPECT_EQ(problem_text(spec), "");
  const Words first = arguments(spec, Begins::Weights);
  const auto load = std::ranges::find(first, "--load_checkpoint") - first.begin();
  EXPECT_EQ(first.at(load + 1), "/data/base");
  EXPECT_THAT(first, Not(Contains("--resume_training")));
  EXPECT_THAT(first, Not(Contains("--auto_trans_ckpt")));
  EXPECT_THAT(arguments(spec, Begins::Own), Contains("--resume_training"));
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_PREDICT);
  EXPECT_EQ(problem_text(spec), "") << "what is predicted with is weights, too";
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_TRAIN);
  spec.mutable_launch()->add_args("--load_checkpoint");
  spec.mutable_launch()->add_args("/mine");
  EXPECT_THAT(
      problem_text(spec),
      HasSubstr(
          "launch.args[2]: start.from says already what is loaded; leave one of the two out"));
  spec.mutable_launch()->set_args(2, "--resume_training");
  spec.mutable_launch()->set_args(3, "True");
  EXPECT_THAT(problem_text(spec),
              HasSubstr("launch.args[2]: goes on from a checkpoint, and start.as: weights"));
}

// A spec that names the directory itself is not changed.
TEST(Start, OfOtherProgramsTheTemplateAloneSaysWhere) {
  for (const char* engine : {"torch", "command"}) {
    const auto unnamed = starting(engine, {"--lr", "1"});
    EXPECT_THAT(
        problem_text(unnamed),
        HasSubstr(std::string("start.from: nothing would read the weights: of engine ") + engine))
        << engine;
    EXPECT_THAT(problem_text(starting(engine, {"$${start.dir}"})), HasSubstr("nothing would read"));
    const auto named = starting(engine, {"--init", "${start.dir}"});
    EXPECT_EQ(problem_text(named), "");
    EXPECT_THAT(arguments(named, Begins::Weights), ElementsAre("--init", "/data/base"));
    EXPECT_THAT(arguments(named, Begins::Own), ElementsAre("--init", ""));
    auto variable = starting(engine, {});
    (*variable.mutable_runtime()->mutable_env())["INIT"] = "${start.dir}";
    EXPECT_EQ(problem_text(variable), "");
    EXPECT_EQ(problem_text(starting(engine, {}, v1::START_AS_RESUME, "job:base")), "")
        << "MUSTER_RESUME_DIR is in every rank's environment";
  }
  const auto own =
      starting("megatron", {"--save", "/x", "--pretrained-checkpoint", "${start.dir}"});
  EXPECT_THAT(arguments(own, Begins::Weights),
              ElementsAre("--save", "/out/j/checkpoints/attempt-1", "--pretrained-checkpoint",
                          "/data/base"));
  EXPECT_THAT(problem_text(starting("megatron", {"--lr", "1"})),
              HasSubstr("start.from: nothing would read the weights: the command line is none that "
                        "engine megatron"));
}

TEST(Start, WhatCannotBeResumedFromIsRefused) {
  EXPECT_THAT(problem_text(starting("megatron", {"--save", "/x"}, v1::START_AS_RESUME,
                                    "/d/checkpoint_network")),
              HasSubstr("start.from: 'checkpoint_network' holds weights alone"));
  EXPECT_THAT(problem_text(starting("mindformers", {"--config", "a.yaml"}, v1::START_AS_RESUME,
                                    "stage:pre/output/checkpoint_network")),
              HasSubstr("start.from: 'checkpoint_network' holds weights alone, without optimizer "
                        "and counters; resume from its neighbour 'checkpoint'; or write "
                        "start.as: weights"));
  auto eval = starting("mindformers", {"--config", "a.yaml"}, v1::START_AS_RESUME, "job:base");
  eval.mutable_launch()->set_mode(v1::LAUNCH_MODE_EVAL);
  EXPECT_THAT(problem_text(eval), HasSubstr("start.as: resume is for modes that train"));
}

TEST(Start, TheTemplateHasAPlaceAndAKind) {
  EXPECT_THAT(
      problem_text(spec_of("torch", {"${start.dir}"})),
      HasSubstr(
          "launch.args[0]: '${start.dir}' has no value: the spec names nothing to start from"));
  EXPECT_THAT(problem_text(starting("torch", {"${start.dir}"}, v1::START_AS_RESUME, "job:base")),
              HasSubstr("launch.args[0]: '${start.dir}' is for start.as: weights"));
}

// The links are made even if the step is known, because a tracker that names another step is not
// trusted.
TEST(Start, ANodeMakesTheLinksOfWeights) {
  const auto spec = starting("megatron", {"--save", "/x"}, v1::START_AS_WEIGHTS, "job:base");
  auto request = request_of(spec);
  request.start_dir = "/out/j/resume/attempt-1";
  request.resume_source = "/out/base/checkpoints/attempt-3";
  request.resume_step = 120;
  request.resume_from_start = true;
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  const v1::NodeLaunch launch = node_launch(request, *plan, 0);
  EXPECT_EQ(launch.resume().dir(), "/out/j/resume/attempt-1");
  EXPECT_EQ(launch.resume().source(), "/out/base/checkpoints/attempt-3");
  EXPECT_EQ(launch.resume().step(), 120);
  EXPECT_EQ(env(plan->ranks[0], "MUSTER_RESUME_DIR"), "") << "a first start";
  request.resume_source.clear();
  EXPECT_FALSE(node_launch(request, *plan, 0).has_resume())
      << "a directory that somebody names is used as it is";
}

TEST(Start, AContainerSeesWhatIsRead) {
  auto spec = starting("megatron", {"--save", "/x"});
  spec.mutable_runtime()->set_image("train:1");
  v1::InputSpec& input = *spec.add_inputs();
  input.set_name("data");
  input.set_from("/data/wiki");
  const auto request = begun(spec, Begins::Weights);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  const v1::NodeLaunch launch = node_launch(request, *plan, 0);
  Words mounted;
  for (const v1::ContainerMount& mount : launch.container().mounts())
    mounted.push_back(mount.source() + (mount.read_only() ? " ro" : ""));
  EXPECT_THAT(mounted, ElementsAre("/data/wiki ro", "/data/base ro", "/srv"));
}

TEST(Start, AScriptsLaunchersGetItToo) {
  auto spec = starting("megatron", {});
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  spec.mutable_launch()->set_intercept(true);
  EXPECT_EQ(problem_text(spec), "");
  const auto request = begun(spec, Begins::Weights);
  EXPECT_EQ(json_of(intercepted_megatron(request)),
            R"({"edits":[{"onlyWith":{"options":["--save","--load"]}},)"
            R"({"saves":{"option":"--save","weightsAloneFlag":"--no-save-optim"}},)"
            R"({"set":{"option":"--save","value":"/out/j/checkpoints/attempt-1"}},)"
            R"({"put":{"option":"--load","value":"/data/base"}},{"dropValue":"--ckpt-step"},)"
            R"({"match":{"flag":"--finetune","other":"--load"}},)"
            R"({"match":{"flag":"--no-load-optim","other":"--load"}},)"
            R"({"match":{"flag":"--no-load-rng","other":"--load"}}]})");
  const std::string mindformers = json_of(intercepted_mindformers(request));
  EXPECT_THAT(mindformers,
              HasSubstr(R"({"put":{"option":"--load_checkpoint","value":"/data/base"}})"));
  EXPECT_THAT(mindformers, Not(HasSubstr("--resume_training")));
}

v1::JobSpec with_input(const std::string& argument) {
  auto spec = spec_of("torch", {argument});
  for (const auto& [name, from] :
       {std::pair{"data", "/data/wiki"}, std::pair{"vocab", "stage:prepare/vocab"}}) {
    v1::InputSpec& input = *spec.add_inputs();
    input.set_name(name);
    input.set_from(from);
  }
  spec.mutable_inputs(1)->set_env("VOCAB");
  spec.mutable_stage()->set_name("train");
  return spec;
}

TEST(Inputs, AreTemplatesAndVariables) {
  auto spec = with_input("--data=${inputs.data}/x");
  spec.mutable_launch()->add_args("${inputs.vocab}");
  EXPECT_EQ(problem_text(spec), "");
  v1::ResolvedSpec resolved;
  (*resolved.mutable_inputs())["vocab"] = "/out/p/vocab";
  LaunchRequest request = request_of(spec);
  request.resolved = &resolved;
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->ranks[3].argv[3], "--data=/data/wiki/x");
  EXPECT_EQ(plan->ranks[3].argv[4], "/out/p/vocab");
  for (const RankPlan& rank : plan->ranks) {
    EXPECT_EQ(rank.env.at("VOCAB").text, "/out/p/vocab");
    EXPECT_EQ(rank.env.at("VOCAB").source, "inputs.vocab");
  }
  EXPECT_THAT(problem_text(with_input("${inputs.dta}")),
              HasSubstr("launch.args[0]: '${inputs.dta}' is no input of this spec; did you mean "
                        "'data'? (inputs: data, vocab)"));
  EXPECT_THAT(problem_text(spec_of("torch", {"${inputs.data}"})),
              HasSubstr("it has none; name the files below inputs"));
  resolved.clear_inputs();
  EXPECT_FALSE(plan_launch(request)) << "it was never looked up";
}

TEST(Stages, DirectoriesOfThoseBeforeAreTemplates) {
  auto spec = spec_of("torch", {"${stages.prepare.out}/tokens"});
  EXPECT_THAT(
      problem_text(spec),
      HasSubstr(
          "launch.args[0]: '${stages.prepare.out}' names a stage, and this job is in no chain"));
  spec.mutable_stage()->set_name("train");
  EXPECT_EQ(problem_text(spec), "") << "which are before it is not said yet";
  v1::ResolvedSpec resolved;
  resolved.mutable_stage();
  EXPECT_THAT(problem_text(spec, &resolved),
              HasSubstr("there is no stage 'prepare' before this one; name it in schedule.after"));
  v1::StageDir& dir = *resolved.mutable_stage()->add_dirs();
  dir.set_stage("prepar");
  EXPECT_THAT(problem_text(spec, &resolved),
              HasSubstr("did you mean 'prepar'? (before it: prepar)"));
  dir.set_stage("prepare");
  EXPECT_EQ(problem_text(spec, &resolved), "");
  LaunchRequest request = request_of(spec);
  request.resolved = &resolved;
  EXPECT_FALSE(plan_launch(request)) << "nobody knows where it is";
  dir.set_out("/out/p");
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->ranks[0].argv[3], "/out/p/tokens");
}

TEST(Stages, WhatOneCreatesIsBelowItsOutputDirectory) {
  auto spec = spec_of("torch", {});
  EXPECT_EQ(*creates_path(spec, "/out/j"), "");
  spec.mutable_stage()->set_creates("tokens/_DONE");
  EXPECT_EQ(*creates_path(spec, "/out/j"), "/out/j/tokens/_DONE");
  spec.mutable_stage()->set_creates("${out}/tokens");
  EXPECT_EQ(*creates_path(spec, "/out/j"), "/out/j/tokens");
  spec.mutable_stage()->set_creates("/data/tokens");
  EXPECT_EQ(*creates_path(spec, "/out/j"), "/data/tokens");
}

}  // namespace
}  // namespace muster::engine
