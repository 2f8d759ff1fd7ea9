// code.patches: every path of the code is a path of the node's copy, and the order describes how to
// make the copy.
#include "common/engine/model/code_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/patch_plan.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;

v1::JobSpec patched_spec(const char* engine, const std::vector<std::string>& args,
                         const std::string& at = "/srv/Megatron-LM") {
  v1::JobSpec spec = spec_of(engine, args);
  spec.mutable_code()->set_at(at);
  v1::CodePatch& one = *spec.mutable_code()->add_patches();
  one.set_name("fix.diff");
  one.set_content("--- a/x\n+++ b/x\n");
  spec.mutable_code()->add_patches()->set_name("builtin:node-local-index");
  return spec;
}

LaunchPlan copies_planned(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : LaunchPlan{};
}

TEST(CodePlace, RanksRunInTheCopyOfTheirNode) {
  const auto spec = patched_spec("torch", {});
  const LaunchPlan plan = copies_planned(request_of(spec));
  EXPECT_EQ(plan.ranks[0].cwd, "/out/j/code/node-0/Megatron-LM");
  EXPECT_EQ(plan.ranks[3].cwd, "/out/j/code/node-1/Megatron-LM");
  EXPECT_THAT(plan.ranks[3].argv,
              ElementsAre("python3", "-u", "/out/j/code/node-1/Megatron-LM/pretrain.py"));
  LaunchRequest again = request_of(spec);
  resume_at(again, 5);
  EXPECT_EQ(copies_planned(again).ranks[0].cwd, plan.ranks[0].cwd) << "the same over attempts";
}

TEST(CodePlace, TheOrderSaysHowTheCopyIsMade) {
  auto spec = patched_spec("torch", {});
  spec.mutable_runtime()->add_setup("make");
  spec.mutable_runtime()->set_image("img:1");
  const LaunchRequest request = request_of(spec);
  const v1::NodeLaunch order = node_launch(request, copies_planned(request), 1);
  EXPECT_EQ(order.code().source(), "/srv/Megatron-LM");
  EXPECT_EQ(order.code().path(), "/out/j/code/node-1/Megatron-LM");
  ASSERT_EQ(order.code().patches_size(), 2);
  EXPECT_EQ(order.code().patches(0).content(), "--- a/x\n+++ b/x\n");
  EXPECT_EQ(order.code().patches(1).name(), "builtin:node-local-index");
  EXPECT_EQ(order.code().sha256().size(), 64u);
  EXPECT_THAT(order.make_dirs(), Contains("/out/j/code"));
  EXPECT_EQ(order.setup().cwd(), "/out/j/code/node-1/Megatron-LM");
  EXPECT_EQ(order.container().mounts(0).source(), "/srv/Megatron-LM")
      << "what links of the copy lead to";

  auto other = spec;
  other.mutable_code()->mutable_patches(0)->set_content("--- a/y\n+++ b/y\n");
  const LaunchRequest second = request_of(other);
  EXPECT_NE(node_launch(second, copies_planned(second), 1).code().sha256(), order.code().sha256());

  other.mutable_code()->clear_patches();
  const LaunchRequest without = request_of(other);
  const v1::NodeLaunch plain = node_launch(without, copies_planned(without), 1);
  EXPECT_FALSE(plain.has_code());
  EXPECT_EQ(plain.setup().cwd(), "/srv/Megatron-LM");
  EXPECT_THAT(plain.make_dirs(), testing::Not(Contains("/out/j/code")));
}

TEST(CodePlace, PathsOfTheSpecLeadIntoTheCopy) {
  auto spec = patched_spec("mindformers", {}, "/srv/mf/");
  spec.mutable_launch()->set_config("/srv/mf/configs/a.yaml");
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_TRAIN);
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  v1::ConfigPatch change;
  change.set_file("configs/a.yaml");
  v1::ConfigChange& item = *change.add_changes();
  item.set_at("a.b");
  item.set_value("1");
  *spec.mutable_launch()->add_patch() = change;
  const LaunchRequest request = request_of(spec);
  const LaunchPlan plan = copies_planned(request);
  EXPECT_THAT(plan.ranks[2].argv, Contains("/out/j/code/node-1/mf/run_mindformer.py"));
  EXPECT_THAT(plan.ranks[2].argv, Contains("/out/j/work/attempt-1/patched/node-1/0/a.yaml"));
  const v1::NodeLaunch order = node_launch(request, plan, 1);
  EXPECT_EQ(order.patched(0).source(), "/out/j/code/node-1/mf/configs/a.yaml")
      << "changed on top of what the patches have made of it";
  EXPECT_EQ(file_patches(spec).front().source, "/srv/mf/configs/a.yaml")
      << "what a person can look at before there is a copy";
  EXPECT_EQ(request.spec->code().patches_size(), 2);

  spec = patched_spec("torch", {"--config", "/srv/Megatron-LM/configs/a.yaml"});
  *spec.mutable_launch()->add_patch() = change;
  spec.mutable_launch()->set_script("/srv/Megatron-LM/pretrain.py");
  spec.mutable_launch()->set_cwd("/srv/Megatron-LMs");
  const LaunchPlan absolute = copies_planned(request_of(spec));
  EXPECT_EQ(absolute.ranks[0].argv[2], "/out/j/code/node-0/Megatron-LM/pretrain.py");
  EXPECT_EQ(absolute.ranks[0].argv[4], "/out/j/work/attempt-1/patched/node-0/0/a.yaml");
  EXPECT_EQ(absolute.ranks[0].cwd, "/srv/Megatron-LMs")
      << "another directory whose name begins alike";
}

TEST(CodePlace, NamesWithDollarsAndWithoutAName) {
  EXPECT_EQ(copies_planned(request_of(patched_spec("torch", {}, "/srv/a$b"))).ranks[0].cwd,
            "/out/j/code/node-0/a$b");
  EXPECT_EQ(code_name(patched_spec("torch", {}, "/srv/..")), "code");
  EXPECT_EQ(code_name(patched_spec("torch", {}, "/")), "code");
  EXPECT_EQ(code_name(patched_spec("torch", {}, "/srv//x///")), "x");
}

TEST(CodePlace, ModelArtsGetsThePathOfTheCopy) {
  auto spec = patched_spec("torch", {});
  spec.set_compat("modelarts");
  EXPECT_EQ(env(copies_planned(request_of(spec)).ranks[3], "MA_JOB_DIR"), "/out/j/code/node-1");
}

}  // namespace
}  // namespace muster::engine
