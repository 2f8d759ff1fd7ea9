// launch.per: node: what a node's script is given, and what it passes to the launcher shim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/model/engine.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

v1::JobSpec script_spec(const std::string& engine = "megatron") {
  v1::JobSpec spec;
  spec.set_name("tutorial");
  spec.set_engine(engine);
  spec.mutable_code()->set_at("/home/ada/exp");
  v1::LaunchSpec& launch = *spec.mutable_launch();
  launch.set_per(v1::LAUNCH_PER_NODE);
  launch.set_intercept(true);
  for (const char* word : {"bash", "run.sh", "${node.rank}"}) launch.add_run(word);
  spec.mutable_resources()->set_nodes(2);
  spec.mutable_resources()->set_devices(2);
  spec.mutable_recovery()->set_max_restarts(7);
  spec.mutable_recovery()->mutable_stop_grace()->set_seconds(3);
  return spec;
}

LaunchRequest script_request(const v1::JobSpec& spec) {
  LaunchRequest request{
      .spec = &spec, .job_id = "01j8x4a0b7c2d", .attempt = 1, .master_port = 29500};
  request.nodes = {{.node = NodeName("n1"),
                    .address = "10.0.0.1",
                    .devices = {4, 5},
                    .first_rank = RankNo(0),
                    .rank_count = 1,
                    .device_type = "nvidia",
                    .interface = "eth0"},
                   {.node = NodeName("n2"),
                    .address = "10.0.0.2",
                    .devices = {0, 3},
                    .first_rank = RankNo(1),
                    .rank_count = 1,
                    .device_type = "nvidia",
                    .interface = "eth0"}};
  request.out_dir = out_dir(spec, request.job_id, "/out");
  request.save_dir = save_dir(spec, request.out_dir, request.attempt);
  return request;
}

TEST(NodeScript, IsOneProcessANodeWithAllOfItsDevices) {
  const auto spec = script_spec();
  const auto request = script_request(spec);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->ranks.size(), 2U);
  const RankPlan& second = plan->ranks[1];
  EXPECT_THAT(second.argv, ElementsAre("bash", "run.sh", "1"));
  EXPECT_THAT(second.devices, ElementsAre(0U, 3U));
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"NNODES", "2"},
                                          {"NODE_RANK", "1"},
                                          {"MASTER_ADDR", "10.0.0.1"},
                                          {"MASTER_PORT", "29500"},
                                          {"NPROC_PER_NODE", "2"},
                                          {"PET_NPROC_PER_NODE", "2"},
                                          {"CUDA_VISIBLE_DEVICES", "0,3"},
                                          {"GLOO_SOCKET_IFNAME", "eth0"},
                                          {"MUSTER_DEVICES", "0,3"},
                                          {"MUSTER_RANK", "1"},
                                          {"MUSTER_WORLD_SIZE", "2"},
                                          {"MUSTER_SHIM_WORLD_SIZE", "4"},
                                          {"MUSTER_SHIM_FIRST_RANK", "2"},
                                          {"MUSTER_SHIM_LOGS", "/out/01j8x4a0b7c2d/logs/attempt-1"},
                                          {"MUSTER_SHIM_GRACE_MS", "3000"},
                                          {"RANK", "(unset)"},
                                          {"LOCAL_RANK", "(unset)"},
                                          {"WORLD_SIZE", "(unset)"}})
    EXPECT_EQ(env(second, name), value) << name;
  EXPECT_EQ(plan->watching.world_size(), 4U)
      << "a checkpoint has a shard of every rank of the training";
  const auto launch = node_launch(request, *plan, 1);
  EXPECT_TRUE(launch.script().intercept());
  EXPECT_THAT(launch.make_dirs(), Contains("/out/01j8x4a0b7c2d/logs/attempt-1"));
}

TEST(NodeScript, WithoutInterceptionNothingOfTheShimIsThere) {
  auto spec = script_spec();
  spec.mutable_launch()->set_intercept(false);
  const auto request = script_request(spec);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan);
  for (const auto& [name, value] : plan->ranks[0].env)
    EXPECT_FALSE(name.starts_with("MUSTER_SHIM_")) << name;
  const auto launch = node_launch(request, *plan, 0);
  EXPECT_TRUE(launch.has_script());
  EXPECT_FALSE(launch.script().intercept());
}

TEST(NodeScript, WhatTheSpecSaysStands) {
  auto spec = script_spec();
  (*spec.mutable_runtime()->mutable_env())["NPROC_PER_NODE"] = "1";
  EXPECT_EQ(env(plan_launch(script_request(spec))->ranks[0], "NPROC_PER_NODE"), "1");
  EXPECT_EQ(env(plan_launch(script_request(spec))->ranks[0], "PYTHON_EXEC"), "(unset)");
  spec.mutable_runtime()->set_python("/opt/py/bin/python");
  EXPECT_EQ(env(plan_launch(script_request(spec))->ranks[0], "PYTHON_EXEC"), "/opt/py/bin/python");
}

// As launch_megatron() changes a rank's own command line.
TEST(NodeScript, MegatronsDirectoriesAreTheAttempts) {
  const auto spec = script_spec();
  auto request = script_request(spec);
  EXPECT_EQ(env(plan_launch(request)->ranks[0], "MUSTER_SHIM_EDITS"),
            R"({"edits":[{"onlyWith":{"options":["--save","--load"]}},)"
            R"({"saves":{"option":"--save","weightsAloneFlag":"--no-save-optim"}},)"
            R"({"loads":"--load"},{"set":{"option":"--save","value":")" +
                request.save_dir + R"("}}]})");
  request.attempt = 2;
  request.resume_step = 20;
  request.resume_dir = "/out/resume/attempt-2";
  EXPECT_THAT(env(plan_launch(request)->ranks[0], "MUSTER_SHIM_EDITS"),
              HasSubstr(R"(,{"put":{"option":"--load","value":"/out/resume/attempt-2"}},)"
                        R"({"dropValue":"--ckpt-step"},{"drop":"--finetune"},)"
                        R"({"match":{"flag":"--no-load-optim","other":"--no-save-optim"}},)"
                        R"({"match":{"flag":"--no-load-rng","other":"--no-save-rng"}}]})"));
  const auto torch = script_spec("torch");
  EXPECT_EQ(env(plan_launch(script_request(torch))->ranks[0], "MUSTER_SHIM_EDITS"), "");
}

TEST(NodeScript, WhatEarlierJobsHaveSavedIsPassedToTheLauncher) {
  const auto spec = script_spec();
  auto request = script_request(spec);
  EXPECT_EQ(env(plan_launch(request)->ranks[0], "MUSTER_SHIM_SAVED"), "(unset)");
  request.saved = {
      {.named_dir = "/data/ckpt", .job = JobId("j1"), .path = "/out/j1/iter_0000020", .step = 20},
      {.named_dir = "/data/a\tb", .job = JobId("j2"), .path = "/x", .step = 1},
      {.named_dir = "/data/none", .job = JobId("j3"), .path = "", .step = 0}};
  const auto plan = plan_launch(request);
  EXPECT_EQ(env(plan->ranks[0], "MUSTER_SHIM_SAVED"),
            "/data/ckpt\tj1\t20\t/out/j1/iter_0000020\n/data/none\tj3\t0\t\n");
  EXPECT_EQ(env(plan->ranks[0], "MUSTER_SHIM_LINKS"),
            request.out_dir + "/resume/attempt-1.earlier");
  // A start that muster itself sets is not replaced by the shim a second time.
  request.start_dir = "/out/start";
  EXPECT_THAT(env(plan_launch(request)->ranks[0], "MUSTER_SHIM_EDITS"), Not(HasSubstr("loads")));
}

TEST(NodeScript, ARankOfTheTrainingHasTheLaunchersVariables) {
  const auto spec = script_spec();
  const auto request = script_request(spec);
  const auto plan = plan_launch(request);
  const auto place = training_place(request, 3);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->node, 1U);
  EXPECT_EQ(place->local_rank, 1U);
  EXPECT_FALSE(training_place(request, 4));
  const RankPlan rank = training_rank(request, plan->ranks[1], 3, *place);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"RANK", "3"},
                                          {"LOCAL_RANK", "1"},
                                          {"WORLD_SIZE", "4"},
                                          {"LOCAL_WORLD_SIZE", "2"},
                                          {"MUSTER_RANK", "3"},
                                          {"NNODES", "2"},
                                          {"MUSTER_SHIM_EDITS", "(unset)"}})
    EXPECT_EQ(env(rank, name.c_str()), value) << name;
  const auto ranks = script_spec();
  auto plain = ranks;
  plain.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  auto other = script_request(plain);
  EXPECT_FALSE(training_place(other, 0));
}

TEST(NodeScript, MindFormersIsServedByMsrunAlone) {
  auto spec = script_spec("mindformers");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_RANKTABLE);
  EXPECT_THAT(check_launch(spec), Contains(testing::Field(&KeyedProblem::key, "launch.launcher")));
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_THAT(check_launch(spec),
              Not(Contains(testing::Field(&KeyedProblem::key, "launch.launcher"))));
  auto request = script_request(spec);
  request.attempt = 2;
  request.resume_step = 20;
  request.resume_dir = "/r";
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(env(plan->ranks[0], "MUSTER_SHIM_EDITS"),
              HasSubstr(R"({"edits":[{"onlyScript":"run_mindformer.py"},)"
                        R"({"put":{"option":"--output_dir","value":")"));
  EXPECT_THAT(env(plan->ranks[0], "MUSTER_SHIM_EDITS"),
              HasSubstr(R"(,{"put":{"option":"--load_checkpoint","value":"/r"}},)"
                        R"({"put":{"option":"--resume_training","value":"True"}},)"
                        R"({"put":{"option":"--auto_trans_ckpt","value":"False"}},)"
                        R"({"dropValue":"--src_strategy_path_or_dir"}]})"));
  EXPECT_EQ(env(plan->ranks[0], "LOCAL_DEFAULT_PATH"), request.save_dir);
}

TEST(NodeScript, IsOneRankANode) { EXPECT_EQ(ranks_on_node(script_spec(), 7, 8), 1U); }

}  // namespace
}  // namespace muster::engine
