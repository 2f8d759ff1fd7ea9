// launch.patch, launch.vars, and the keys of resume that override them: copies, the words that name
// them, and what is left out on a resume.
#include "common/engine/patch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

void change(google::protobuf::RepeatedPtrField<v1::ConfigPatch>& files, const std::string& file,
            const std::vector<std::pair<std::string, std::string>>& changes) {
  v1::ConfigPatch& one = *files.Add();
  one.set_file(file);
  for (const auto& [at, value] : changes) {
    v1::ConfigChange& added = *one.add_changes();
    added.set_at(at);
    added.set_value(value);
  }
}

// after python -u SCRIPT
Words words(const RankPlan& rank) { return {rank.argv.begin() + 3, rank.argv.end()}; }

LaunchPlan patched(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : LaunchPlan{};
}

// The files of a node that are changed, "SOURCE -> PATH".
Words copies(const LaunchPlan& plan, std::size_t node) {
  Words result;
  for (const PatchPlan& file : plan.patched)
    if (file.node == node) result.push_back(file.source + " -> " + file.path);
  return result;
}

// The files of a node that must exist, "KEY: SOURCE".
Words needed(const LaunchPlan& plan, std::size_t node) {
  Words result;
  for (const NeedPlan& file : plan.needed)
    if (file.node == node) result.push_back(file.key + ": " + file.source);
  return result;
}

TEST(PatchPlan, ACopyANodeAndTheWordsThatNameIt) {
  auto spec = spec_of("torch", {"--config", "configs/a.yaml", "--model=/srv/m.json", "--also",
                                "./configs/a.yaml", "x"});
  (*spec.mutable_runtime()->mutable_env())["MODEL"] = "/srv/m.json";
  change(*spec.mutable_launch()->mutable_patch(), "configs/a.yaml",
         {{"a.b", "1"}, {"c", "'${save.dir}'"}});
  change(*spec.mutable_launch()->mutable_patch(), "/srv/m.json", {{"d", "${node.rank}"}});
  const LaunchPlan plan = patched(request_of(spec));
  const std::string dir = "/out/j/work/attempt-1/patched/node-";
  EXPECT_THAT(words(plan.ranks[0]),
              ElementsAre("--config", dir + "0/0/a.yaml", "--model=" + dir + "0/1/m.json", "--also",
                          dir + "0/0/a.yaml", "x"));
  EXPECT_THAT(words(plan.ranks[3]),
              ElementsAre("--config", dir + "1/0/a.yaml", "--model=" + dir + "1/1/m.json", "--also",
                          dir + "1/0/a.yaml", "x"));
  EXPECT_EQ(env(plan.ranks[2], "MODEL"), dir + "1/1/m.json");
  EXPECT_EQ(plan.argv_sources[4], "launch.patch");
  EXPECT_THAT(copies(plan, 1), ElementsAre("/srv/configs/a.yaml -> " + dir + "1/0/a.yaml",
                                           "/srv/m.json -> " + dir + "1/1/m.json"));

  const v1::NodeLaunch order = node_launch(request_of(spec), plan, 1);
  ASSERT_EQ(order.patched_size(), 2);
  EXPECT_EQ(order.patched(0).source(), "/srv/configs/a.yaml");
  EXPECT_EQ(order.patched(0).items(1).at(), "c");
  EXPECT_EQ(order.patched(0).items(1).value(), "'/out/j/checkpoints/attempt-1'");
  EXPECT_EQ(order.patched(1).items(0).value(), "1") << "the second node's own";
  ASSERT_EQ(order.needed_size(), 1) << "the script only has to be there";
  EXPECT_EQ(order.needed(0).source(), "/srv/pretrain.py");
  EXPECT_EQ(order.needed(0).key(), "launch.script");
  EXPECT_EQ(order.needed(0).refused_size(), 0);
  EXPECT_THAT(order.make_dirs(), testing::Contains(dir + "1/0"));
}

TEST(PatchPlan, OfMindFormersTheConfigurationIsTheCopy) {
  auto spec = spec_of("mindformers", {});
  spec.mutable_launch()->set_config("configs/a.yaml");
  const LaunchPlan plain = patched(request_of(spec));
  EXPECT_THAT(copies(plain, 0), ElementsAre());
  ASSERT_EQ(plain.needed.size(), 4u);
  EXPECT_EQ(plain.needed[1].source, "/srv/configs/a.yaml");
  EXPECT_EQ(plain.needed[1].key, "launch.config");

  change(*spec.mutable_launch()->mutable_patch(), "./configs//a.yaml",
         {{"runner_config.epochs", "4"}});
  const LaunchPlan plan = patched(request_of(spec));
  EXPECT_THAT(
      plan.ranks[1].argv,
      testing::IsSupersetOf(
          {std::string("--config"), std::string("/out/j/work/attempt-1/patched/node-0/0/a.yaml")}));
  EXPECT_EQ(problem_text(spec), "");
}

// A copy cannot be made without its source. So the source is needed only if it must not have some
// value.
TEST(PatchPlan, TheSourceOfACopyIsNeededForItsRefusedValuesAlone) {
  auto spec = spec_of("mindformers", {});
  spec.mutable_launch()->set_config("configs/a.yaml");
  change(*spec.mutable_launch()->mutable_patch(), "configs/a.yaml",
         {{"runner_config.epochs", "4"}});
  const LaunchPlan plan = patched(request_of(spec));
  const std::string script = needed(plan, 1).front();
  EXPECT_THAT(script, testing::StartsWith("launch.script: /srv/"));
  EXPECT_THAT(needed(plan, 1), ElementsAre(script, "launch.config: /srv/configs/a.yaml"));
  EXPECT_THAT(copies(plan, 1), ElementsAre(testing::StartsWith("/srv/configs/a.yaml -> ")));
  spec.mutable_resume()->set_enabled(false);
  EXPECT_THAT(needed(patched(request_of(spec)), 1), ElementsAre(script));
}

// If it is missing, its key is then reported.
TEST(PatchPlan, AScriptOfEachRanksOwnHasToBeThere) {
  auto spec = spec_of("torch", {});
  spec.mutable_launch()->set_script("train_${rank}.py");
  const LaunchPlan plan = patched(request_of(spec));
  std::vector<std::string> sources;
  for (const NeedPlan& file : plan.needed) {
    EXPECT_EQ(file.key, "launch.script");
    sources.push_back(file.source);
  }
  EXPECT_EQ(sources.size(), plan.ranks.size());
  EXPECT_THAT(sources, testing::Contains("/srv/train_1.py"));
}

TEST(PatchPlan, AnAttemptThatResumesHasMoreChanges) {
  auto spec = spec_of("torch", {"--config", "a.yaml", "--more", "b.yaml"});
  change(*spec.mutable_launch()->mutable_patch(), "a.yaml", {{"x", "1"}});
  change(*spec.mutable_resume()->mutable_patch(), "./a.yaml",
         {{"x", "2"}, {"load", "\"${resume.dir}\""}});
  change(*spec.mutable_resume()->mutable_patch(), "b.yaml", {{"y", "${resume.step}"}});
  auto request = request_of(spec);
  EXPECT_THAT(copies(patched(request), 0),
              ElementsAre("/srv/a.yaml -> /out/j/work/attempt-1/patched/node-0/0/a.yaml"));
  resume_at(request, 40);
  const LaunchPlan plan = patched(request);
  ASSERT_EQ(copies(plan, 0).size(), 2u);
  EXPECT_THAT(plan.patched[0].items, ElementsAre(std::pair("x", "1"), std::pair("x", "2"),
                                                 std::pair("load", "\"/out/j/resume/attempt-2\"")));
  EXPECT_THAT(plan.patched[1].items, ElementsAre(std::pair("y", "40")));
}

TEST(PatchPlan, ScriptsGetOtherAssignments) {
  auto spec = spec_of("command", {});
  spec.mutable_launch()->clear_script();
  for (const char* word : {"bash", "-e", "run.sh", "a.sh"}) spec.mutable_launch()->add_run(word);
  (*spec.mutable_launch()->mutable_vars())["NNODES"] = "${nodes}";
  (*spec.mutable_launch()->mutable_vars())["CONFIG"] = "configs/a.yaml";
  (*spec.mutable_resume()->mutable_vars())["NNODES"] = "again";
  change(*spec.mutable_launch()->mutable_patch(), "configs/a.yaml", {{"x", "1"}});
  auto request = request_of(spec);
  const LaunchPlan plan = patched(request);
  EXPECT_THAT(plan.ranks[0].argv,
              ElementsAre("bash", "-e", "/out/j/work/attempt-1/patched/node-0/1/run.sh", "a.sh"));
  EXPECT_EQ(plan.argv_sources[2], "launch.vars");
  ASSERT_EQ(copies(plan, 0).size(), 2u);
  EXPECT_THAT(plan.patched[1].vars,
              ElementsAre(std::pair("CONFIG", "/out/j/work/attempt-1/patched/node-0/0/a.yaml"),
                          std::pair("NNODES", "2")));
  resume_at(request, 40);
  EXPECT_EQ(patched(request).patched[1].vars.at("NNODES"), "again");
}

TEST(PatchPlan, WhatNobodyWouldReadIsRefused) {
  auto spec = spec_of("torch", {"--config", "b.yaml"});
  change(*spec.mutable_launch()->mutable_patch(), "a.yaml", {{"x", "1"}});
  EXPECT_THAT(problem_text(spec),
              HasSubstr("launch.patch[0]: nothing on the command line names 'a.yaml', "
                        "so no program would read the copy"));
  const auto refused = plan_launch(request_of(spec));
  ASSERT_FALSE(refused);
}

TEST(PatchPlan, TemplatesAreANodes) {
  auto spec = spec_of("torch", {"--config", "a.yaml"});
  change(*spec.mutable_launch()->mutable_patch(), "a.yaml",
         {{"x", "${rank}"}, {"y", "${env:X}"}, {"z", "'${out}'"}});
  EXPECT_THAT(
      problem_text(spec),
      HasSubstr(
          "launch.patch[0][0]: '${rank}' has no value here: one copy is for all ranks of a node"));
  EXPECT_THAT(problem_text(spec), HasSubstr("launch.patch[0][1]: '${env:X}' has no value here"));
  EXPECT_THAT(problem_text(spec), testing::Not(HasSubstr("[2]")));
  auto quoted = spec_of("torch", {"--config", "a.yaml"});
  change(*quoted.mutable_launch()->mutable_patch(), "a.yaml", {{"z", "'${out}'"}});
  auto request = request_of(quoted);
  request.out_dir = "/it's";
  const auto plan = plan_launch(request);
  ASSERT_FALSE(plan);
  EXPECT_THAT(
      plan.error().message,
      HasSubstr("launch.patch[0][0]: '${out}' is '/it's', which cannot be put into a value"));
}

TEST(ResumeDrop, TakesFlagsWithTheirValues) {
  auto spec = spec_of("torch", {"--load", "/a", "--lr", "-1", "-2.5", "--data", "a", "b",
                                "--seed=1", "-v", "--finetune", "--keep", "x", "--load=/b"});
  for (const char* flag : {"--load", "--lr", "--data", "--seed", "-v", "--finetune"})
    spec.mutable_resume()->add_drop(flag);
  spec.mutable_resume()->add_args("--load");
  spec.mutable_resume()->add_args("${resume.dir}");
  auto request = request_of(spec);
  EXPECT_EQ(words(patched(request).ranks[0]).size(), 14u);
  resume_at(request, 40);
  EXPECT_THAT(words(patched(request).ranks[0]),
              ElementsAre("--keep", "x", "--load", "/out/j/resume/attempt-2"));
}

TEST(FilePatches, AreThoseOfAFirstAttempt) {
  auto spec = spec_of("torch", {"--config", "a.yaml"});
  spec.mutable_code()->set_at("/srv/$HOME");
  change(*spec.mutable_launch()->mutable_patch(), "a.yaml", {{"x", "${save.dir}"}});
  change(*spec.mutable_resume()->mutable_patch(), "a.yaml", {{"x", "2"}});
  const auto files = file_patches(spec);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].source, "/srv/$HOME/a.yaml");
  EXPECT_THAT(files[0].items, ElementsAre(std::pair("x", "${save.dir}")));
}

// Regression: because of its end, a whole -c string was taken for the script's name.
TEST(PatchPlan, CommandsInAStringAreNoScript) {
  auto spec = spec_of("torch", {});
  spec.mutable_launch()->clear_script();
  for (const char* word : {"bash", "-c", "cd /tmp && bash run.sh"})
    spec.mutable_launch()->add_run(word);
  (*spec.mutable_launch()->mutable_vars())["A"] = "1";
  const auto plan = plan_launch(request_of(spec));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message,
              HasSubstr("launch.vars: is for shell scripts, and no word of launch.run is one "
                        "(*.sh; a string behind -c is not)"));
  spec.mutable_launch()->add_run("other.sh");
  EXPECT_THAT(copies(patched(request_of(spec)), 0), ElementsAre(testing::EndsWith("/other.sh")));
}

}  // namespace
}  // namespace muster::engine
