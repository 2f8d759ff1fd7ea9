// observe.plog and the binding of cores: which jobs get them, and which programs do it themselves.
#include "common/engine/ascend/plog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/ascend/core_binding.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

v1::NodeLaunch second_node(const v1::JobSpec& spec) {
  const LaunchRequest request = request_of(spec);
  const auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? node_launch(request, *plan, 1) : v1::NodeLaunch();
}

v1::JobSpec on(const char* type, const char* engine = "torch") {
  v1::JobSpec spec = spec_of(engine, {});
  spec.mutable_resources()->set_type(type);
  if (std::string_view(engine) == "mindformers") spec.mutable_launch()->set_config("a.yaml");
  return spec;
}

TEST(Plog, RanksOfEnginesOnAscendHaveADirectoryEach) {
  for (const char* engine : {"torch", "megatron", "mindformers"}) {
    const auto spec = on("ascend", engine);
    const v1::NodeLaunch launch = second_node(spec);
    ASSERT_EQ(launch.ranks_size(), 2) << engine;
    EXPECT_EQ(launch.ranks(0).plog_dir(), "plog/rank-2") << engine;
    EXPECT_EQ(launch.ranks(1).plog_dir(), "plog/rank-3") << engine;
    EXPECT_FALSE(launch.env().contains(std::string(kProcessLogPath)) ||
                 launch.ranks(0).env().contains(std::string(kProcessLogPath)))
        << "the node alone knows where it is";
  }
  const auto spec = on("ascend");
  const auto plan = plan_launch(request_of(spec));
  ASSERT_TRUE(plan);
  EXPECT_EQ(env(plan->ranks[3], "ASCEND_PROCESS_LOG_PATH"), "(run directory)/plog/rank-3");
  EXPECT_EQ(plan->ranks[3].env.at("ASCEND_PROCESS_LOG_PATH").source, "observe.plog");
}

TEST(Plog, AScheduleOfNoRankHasNone) {
  auto spec = on("ascend", "mindformers");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  const auto plan = plan_launch(request_of(spec));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->auxiliaries.size(), 1U);
  EXPECT_FALSE(plan->auxiliaries[0].env.contains("ASCEND_PROCESS_LOG_PATH"));
}

TEST(Plog, OthersOnlyWhereTheyAskForIt) {
  for (auto spec : {on("cpu"), on("nvidia"), on("ascend", "command")}) {
    EXPECT_EQ(second_node(spec).ranks(0).plog_dir(), "") << spec.engine();
    spec.mutable_observe()->set_plog(true);
    EXPECT_EQ(second_node(spec).ranks(0).plog_dir(), "plog/rank-2") << spec.engine();
  }
  auto spec = on("ascend");
  spec.mutable_observe()->set_plog(false);
  EXPECT_EQ(second_node(spec).ranks(0).plog_dir(), "");
}

TEST(Plog, TheJobsOwnVariableWins) {
  auto spec = on("ascend");
  spec.mutable_observe()->set_plog(true);
  (*spec.mutable_runtime()->mutable_env())["ASCEND_PROCESS_LOG_PATH"] = "/logs/${rank}";
  const v1::NodeLaunch launch = second_node(spec);
  EXPECT_EQ(launch.ranks(1).plog_dir(), "");
  EXPECT_EQ(launch.ranks(1).env().at("ASCEND_PROCESS_LOG_PATH"), "/logs/3");
}

TEST(CoreBinding, IsForEnginesWithARankADeviceOnCards) {
  for (const char* type : {"ascend", "ascend910b", "nvidia"})
    EXPECT_TRUE(second_node(on(type)).bind_cores()) << type;
  EXPECT_TRUE(second_node(on("ascend", "mindformers")).bind_cores());
  EXPECT_FALSE(second_node(on("cpu")).bind_cores());
  EXPECT_FALSE(second_node(on("ascend", "command")).bind_cores());
  auto once = on("nvidia");
  once.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
  EXPECT_FALSE(second_node(once).bind_cores());
}

TEST(CoreBinding, StandsBackWhereAnotherBinds) {
  for (const char* name : {"CPU_AFFINITY_CONF", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    auto spec = on("ascend");
    (*spec.mutable_runtime()->mutable_env())[name] = "1";
    EXPECT_FALSE(second_node(spec).bind_cores()) << name;
  }
}

}  // namespace
}  // namespace muster::engine
