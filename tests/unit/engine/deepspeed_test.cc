// The launch of DeepSpeed: what its launcher gives a rank, and what must not stand inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

LaunchPlan launched(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : LaunchPlan{};
}

v1::JobSpec command_spec(const Words& run) {
  auto spec = spec_of("deepspeed", {});
  spec.mutable_launch()->clear_script();
  for (const std::string& word : run) spec.mutable_launch()->add_run(word);
  return spec;
}

TEST(DeepSpeed, ARankHasTheVariablesOfItsLauncher) {
  const auto spec = spec_of("deepspeed", {"--deepspeed_config", "ds.json"});
  const LaunchPlan plan = launched(request_of(spec));
  ASSERT_EQ(plan.ranks.size(), 4U);
  for (const RankPlan& rank : plan.ranks) {
    EXPECT_EQ(env(rank, "RANK"), std::to_string(rank.rank));
    EXPECT_EQ(env(rank, "LOCAL_RANK"), std::to_string(rank.rank % 2));
    EXPECT_EQ(env(rank, "WORLD_SIZE"), "4");
    EXPECT_EQ(env(rank, "MASTER_ADDR"), "10.0.0.1");
    EXPECT_EQ(env(rank, "MASTER_PORT"), "29500");
    EXPECT_EQ(env(rank, "LOCAL_SIZE"), "2");
    EXPECT_EQ(env(rank, "CROSS_RANK"), std::to_string(rank.rank / 2));
    EXPECT_EQ(env(rank, "CROSS_SIZE"), "2");
    EXPECT_EQ(rank.env.at("CROSS_RANK").source, "engine deepspeed");
    EXPECT_EQ(rank.env.at("RANK").source, "engine deepspeed");
  }
  EXPECT_EQ(plan.watching.grammar(), "deepspeed");
  EXPECT_EQ(plan.watching.layout(), "deepspeed");
  EXPECT_EQ(plan.watching.world_size(), 4U);
}

// A node of the placement may have no rank.
TEST(DeepSpeed, OnlyNodesWithRanksAreCounted) {
  const auto spec = spec_of("deepspeed", {});
  auto request = request_of(spec, 3);
  request.nodes[2].rank_count = 0;
  EXPECT_EQ(env(launched(request).ranks[3], "CROSS_SIZE"), "2");
}

TEST(DeepSpeed, TheScriptGetsItsLocalRankFirst) {
  const auto spec = spec_of("deepspeed", {"--deepspeed_config", "ds.json"});
  const LaunchPlan plan = launched(request_of(spec));
  EXPECT_THAT(plan.ranks[3].argv, ElementsAre("python3", "-u", "/srv/pretrain.py", "--local_rank=1",
                                              "--deepspeed_config", "ds.json"));
  EXPECT_THAT(plan.argv_sources,
              ElementsAre("runtime.python", "runtime.python", "launch.script", "engine deepspeed",
                          "launch.args[0]", "launch.args[1]"));
  for (const Words& given : {Words{"--local_rank", "${local_rank}"}, Words{"--local-rank=7"}}) {
    const auto own = spec_of("deepspeed", given);
    EXPECT_EQ(launched(request_of(own)).ranks[3].argv.size(), 3 + given.size()) << given[0];
  }
}

// As with the launcher's --no_local_rank.
TEST(DeepSpeed, ACommandGetsNoLocalRank) {
  const auto spec = command_spec({"python3", "-u", "train.py", "--lr", "1"});
  const LaunchPlan plan = launched(request_of(spec));
  EXPECT_THAT(plan.ranks[3].argv, ElementsAre("python3", "-u", "train.py", "--lr", "1"));
  EXPECT_EQ(env(plan.ranks[3], "LOCAL_RANK"), "1");
}

TEST(DeepSpeed, ALauncherInsideWouldStartAJobADevice) {
  for (const Words& run :
       {Words{"deepspeed", "--hostfile", "hosts", "a.py"}, Words{"/opt/ds/bin/ds", "a.py"},
        Words{"python3", "-m", "deepspeed.launcher.runner", "a.py"},
        Words{"python3", "-u", "-m", "deepspeed.launcher.launch", "a.py"},
        Words{"torchrun", "a.py"}}) {
    auto spec = command_spec(run);
    EXPECT_THAT(problem_text(spec), HasSubstr("starts ranks itself")) << run[0];
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
    EXPECT_THAT(problem_text(spec), Not(HasSubstr("starts ranks itself"))) << run[0];
  }
  for (const Words& run : {Words{"python3", "a.py", "-m", "deepspeed.launcher.runner"},
                           Words{"python3", "-m", "deepspeed"}, Words{"deepspeed.py"}})
    EXPECT_EQ(problem_text(command_spec(run)), "") << run[0];
}

// Regression: a checkpoint with the files of one rank was complete.
TEST(DeepSpeed, OneProcessIsRefused) {
  for (v1::JobSpec spec : {spec_of("deepspeed", {}), command_spec({"deepspeed", "a.py"})}) {
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
    EXPECT_EQ(problem_text(spec),
              "launch.per: once starts one process, and a checkpoint of DeepSpeed is complete with "
              "the files of all ranks, whose number is not known here; write launch.per: rank, or "
              "engine: command, which does not use such checkpoints\n");
  }
}

TEST(DeepSpeed, ItsVariablesAreItsOwn) {
  const Engine* engine = find_engine("deepspeed");
  ASSERT_NE(engine, nullptr);
  for (const char* name : {"RANK", "MASTER_PORT", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"})
    EXPECT_TRUE(is_identity(*engine, name)) << name;
  EXPECT_FALSE(is_identity(*engine, "OMP_NUM_THREADS"));
}

}  // namespace
}  // namespace muster::engine
