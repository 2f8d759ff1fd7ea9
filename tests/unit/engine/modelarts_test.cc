// compat: modelarts: the platform's variables, and its directory with a rank table; without the
// key, none of these.
#include "common/engine/ascend/modelarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/json_tree.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

v1::JobSpec modelarts_spec(const char* engine) {
  v1::JobSpec spec = spec_of(engine, {});
  spec.set_compat("modelarts");
  spec.mutable_code()->set_at("/data/user-job/code/");
  if (std::string_view(engine) == "mindformers") spec.mutable_launch()->set_config("a.yaml");
  return spec;
}

LaunchPlan planned_whole(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *std::move(plan) : LaunchPlan();
}

std::string refusal_of(const LaunchRequest& request) {
  const auto plan = plan_launch(request);
  return plan ? "planned" : plan.error().message;
}

TEST(ModelArts, EveryRankFindsThePlatformsVariables) {
  const v1::JobSpec spec = modelarts_spec("torch");
  const LaunchRequest request = request_of(spec);
  const LaunchPlan plan = planned_whole(request);
  for (const std::size_t r : {0U, 1U, 2U, 3U}) {
    const RankPlan& rank = plan.ranks[r];
    const std::string node = r < 2 ? "0" : "1", address = r < 2 ? "10.0.0.1" : "10.0.0.2",
                      home = "/out/j/work/attempt-1/modelarts/node-" + node;
    EXPECT_EQ(env(rank, "VC_WORKER_NUM"), "2");
    EXPECT_EQ(env(rank, "MA_NUM_HOSTS"), "2");
    EXPECT_EQ(env(rank, "VC_TASK_INDEX"), node);
    EXPECT_EQ(env(rank, "VC_WORKER_HOSTS"), "10.0.0.1,10.0.0.2");
    EXPECT_EQ(env(rank, "MA_NUM_GPUS"), "2");
    EXPECT_EQ(env(rank, "MA_CURRENT_IP"), address);
    EXPECT_EQ(env(rank, "MA_CURRENT_HOST_IP"), address);
    EXPECT_EQ(env(rank, "MA_VJ_NAME"), "ma-job-01j8x4a0b7c2d");
    EXPECT_EQ(env(rank, "MA_TASK_NAME"), "worker");
    EXPECT_EQ(env(rank, "MA_CURRENT_INSTANCE_NAME"), "ma-job-01j8x4a0b7c2d-worker-" + node);
    EXPECT_EQ(env(rank, "MA_HOME"), home);
    EXPECT_EQ(env(rank, "MA_MOUNT_PATH"), home + "/modelarts");
    EXPECT_EQ(env(rank, "MA_LOG_DIR"), home + "/modelarts/log");
    EXPECT_EQ(env(rank, "MA_JOB_DIR"), "/data/user-job") << "the code lies below it";
    EXPECT_EQ(rank.env.at("MA_JOB_DIR").source, "compat");
    EXPECT_EQ(env(rank, "MA_INPUTS"), "(unset)");
    EXPECT_EQ(env(rank, "RANK_TABLE_FILE"), "(unset)")
        << "torch_npu takes any path that is there for a table";
  }
  EXPECT_THAT(node_launch(request, plan, 1).make_dirs(),
              Contains("/out/j/work/attempt-1/modelarts/node-1/modelarts/log"));
}

TEST(ModelArts, WithoutItThereIsNothingOfIt) {
  for (const char* engine : {"torch", "command", "mindformers"}) {
    v1::JobSpec spec = modelarts_spec(engine);
    spec.clear_compat();
    const LaunchRequest request = request_of(spec);
    const LaunchPlan plan = planned_whole(request);
    for (const RankPlan& rank : plan.ranks)
      for (const auto& [name, value] : rank.env)
        EXPECT_FALSE(name.starts_with("MA_") || name.starts_with("VC_")) << engine << " " << name;
    const v1::NodeLaunch launch = node_launch(request, plan, 0);
    for (const std::string& dir : launch.make_dirs()) EXPECT_THAT(dir, Not(HasSubstr("modelarts")));
  }
}

// check_in_modelarts() would import the cloud's client library and write to /cache.
TEST(ModelArts, MindFormersDoesNotLearnThatItIsInside) {
  const v1::JobSpec spec = modelarts_spec("mindformers");
  const LaunchPlan plan = planned_whole(request_of(spec));
  for (const std::string_view name : find_engine("mindformers")->cloud)
    EXPECT_EQ(env(plan.ranks[0], std::string(name)), "(unset)");
  EXPECT_EQ(env(plan.ranks[0], "MA_NUM_HOSTS"), "2");
  EXPECT_THAT(env(plan.ranks[0], "RANK_TABLE_FILE"), testing::EndsWith("/hccl_2s_4p.json"))
      << "its own, a file: nobody converts another one";
}

TEST(ModelArts, AAuxiliaryHasThemToo) {
  v1::JobSpec spec = modelarts_spec("mindformers");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  const LaunchPlan plan = planned_whole(request_of(spec));
  ASSERT_EQ(plan.auxiliaries.size(), 1U);
  EXPECT_EQ(plan.auxiliaries[0].env.at("MA_NUM_HOSTS").text, "2");
}

TEST(ModelArts, ACommandFindsItsRankTableInADirectory) {
  const v1::JobSpec spec = modelarts_spec("command");
  const LaunchRequest request = request_of(spec);
  const LaunchPlan plan = planned_whole(request);
  ASSERT_EQ(plan.files.size(), 2U);
  EXPECT_EQ(plan.files[1].path, "/out/j/ranktables/attempt-1/node-1/modelarts/jobstart_hccl.json");
  EXPECT_EQ(plan.files[1].sha256, sha256_hex(*plan.files[1].content));
  EXPECT_EQ(plan.files[1].source, "compat");
  EXPECT_EQ(env(plan.ranks[3], "RANK_TABLE_FILE"), "/out/j/ranktables/attempt-1/node-1/modelarts");
  EXPECT_THAT(node_launch(request, plan, 1).make_dirs(),
              Contains("/out/j/ranktables/attempt-1/node-1/modelarts"));

  // As the platform's launcher reads it: rank r is device r % 2 of node r / 2.
  const auto document = ranktable::read_json(*plan.files[0].content);
  ASSERT_TRUE(document);
  ranktable::Findings found;
  const auto list = ranktable::read_group_list(*document, found);
  EXPECT_EQ(ranktable::to_text(found.problems), "");
  EXPECT_EQ(list.groups.at(0).instances.at(1).pod_name,
            env(plan.ranks[2], "MA_CURRENT_INSTANCE_NAME"));
  const auto table = ranktable::as_launcher_reads(list);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->servers.at(1).server_id, "10.0.0.2");
  EXPECT_EQ(table->servers.at(1).devices.at(1).device_ip, "192.168.1.11");
  EXPECT_EQ(table->servers.at(1).devices.at(1).rank_id, 3U);
}

// Here a rank is the script, and the table's ranks are those of the devices.
TEST(ModelArts, AScriptANodeHasATableOfAllDevices) {
  v1::JobSpec spec = modelarts_spec("command");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  LaunchRequest request = request_of(spec);
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    request.nodes[i].first_rank = RankNo(static_cast<std::uint32_t>(i));
    request.nodes[i].rank_count = 1;
  }
  const LaunchPlan plan = planned_whole(request);
  ASSERT_EQ(plan.ranks.size(), 2U);
  EXPECT_THAT(*plan.files.at(0).content, HasSubstr("\"device_count\": \"4\""));
  EXPECT_EQ(env(plan.ranks[1], "MA_NUM_GPUS"), "2");
}

TEST(ModelArts, ATableOfTheUsersOwnIsTheOneThatIsConverted) {
  v1::JobSpec spec = modelarts_spec("command");
  spec.mutable_resources()->mutable_rank_table()->set_content(
      R"({"version": "1.0", "server_count": "1", "server_list": [{"server_id": "s", "device": [)"
      R"({"device_id": "1", "device_ip": "192.1.1.1", "rank_id": "0"}, {"device_id": "0", "device_ip": "192.1.1.2", "rank_id": "1"}]}], "status": "completed"})");
  const LaunchPlan plan = planned_whole(request_of(spec));
  const auto made = std::ranges::find(plan.files, std::string("compat"), &FilePlan::source);
  ASSERT_NE(made, plan.files.end());
  EXPECT_LT(made->content->find("192.1.1.1"), made->content->find("192.1.1.2"));
}

TEST(ModelArts, WhereNoTableCanBeMadeTheWayOutIsGiven) {
  v1::JobSpec spec = modelarts_spec("command");
  LaunchRequest request = request_of(spec);
  request.nodes[1].device_ips.clear();
  EXPECT_THAT(refusal_of(request),
              HasSubstr("compat: the rank table in the platform's form (RANK_TABLE_FILE) cannot be "
                        "made: HCCL would refuse it: "));
  request = request_of(spec, 1, {6, 7, 8, 9});
  EXPECT_THAT(refusal_of(request),
              HasSubstr("device 8 of server '10.0.0.1': a group list has devices 0 to 7 only; set "
                        "RANK_TABLE_FILE in runtime.env"));
  (*spec.mutable_runtime()->mutable_env())["RANK_TABLE_FILE"] = "";
  const LaunchPlan plan = planned_whole(request);
  EXPECT_TRUE(plan.files.empty());
  EXPECT_EQ(env(plan.ranks[0], "RANK_TABLE_FILE"), "");
}

TEST(ModelArts, OtherDevicesHaveNoTable) {
  v1::JobSpec spec = modelarts_spec("command");
  for (const char* type : {"cpu", "nvidia", "auto"}) {
    spec.mutable_resources()->set_type(type);
    LaunchRequest request = request_of(spec);
    for (PlacedNode& node : request.nodes) node.device_type = "cpu";
    const LaunchPlan plan = planned_whole(request);
    EXPECT_TRUE(plan.files.empty()) << type;
    EXPECT_EQ(env(plan.ranks[0], "RANK_TABLE_FILE"), "(unset)") << type;
    EXPECT_EQ(env(plan.ranks[0], "VC_WORKER_NUM"), "2") << type;
  }
}

TEST(ModelArts, MoreNodesThanAVariableHoldsAreRefused) {
  v1::JobSpec spec = modelarts_spec("torch");
  spec.mutable_resources()->set_type("cpu");
  LaunchRequest request = request_of(spec, 1, {0});
  for (std::uint32_t i = 1; i < 20'000; ++i) {
    request.nodes.push_back(request.nodes.front());
    request.nodes.back().first_rank = RankNo(i);
  }
  request.only = RankRange{.first = 0, .count = 1};
  EXPECT_THAT(refusal_of(request), HasSubstr("compat: VC_WORKER_HOSTS of 20000 nodes has "));
}

}  // namespace
}  // namespace muster::engine
