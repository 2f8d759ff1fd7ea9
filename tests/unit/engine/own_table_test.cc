// resources.rank_table: the user's own bytes reach the ranks unchanged. And resources.devices of a
// chip that has groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/digest/sha256.h"
#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/ranktable/table_text.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::HasSubstr;

constexpr const char* kOwnBytes = R"({"version": "1.0",   "the user's": "own spelling"})";

v1::JobSpec with_own_table(const char* engine, v1::Launcher launcher = v1::LAUNCHER_UNSPECIFIED) {
  v1::JobSpec spec = spec_of(engine, {});
  spec.mutable_launch()->set_launcher(launcher);
  if (std::string_view(engine) == "mindformers") spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_resources()->mutable_rank_table()->set_name("hccl.json");
  spec.mutable_resources()->mutable_rank_table()->set_content(kOwnBytes);
  return spec;
}

LaunchPlan plan_of(const v1::JobSpec& spec) {
  auto plan = plan_launch(request_of(spec));
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *std::move(plan) : LaunchPlan();
}

TEST(OwnTable, ReachesTheRanksUnchanged) {
  const auto spec = with_own_table("mindformers", v1::LAUNCHER_RANKTABLE);
  const LaunchPlan plan = plan_of(spec);
  ASSERT_EQ(plan.files.size(), 2U);
  for (const FilePlan& file : plan.files) {
    EXPECT_EQ(*file.content, kOwnBytes);
    EXPECT_EQ(file.sha256, sha256_hex(kOwnBytes));
    EXPECT_EQ(file.source, "resources.rank_table");
  }
  EXPECT_EQ(env(plan.ranks[3], "RANK_TABLE_FILE"), plan.files[1].path);
  EXPECT_EQ(env(plan.ranks[3], "RANK_ID"), "3");
  const auto table = plan_table(request_of(spec));
  ASSERT_TRUE(table);
  EXPECT_EQ((*table)->hash, sha256_hex(kOwnBytes));
}

// `msrun --rank_table_file`: for the scheduler as well.
TEST(OwnTable, GoesWithMsrunToo) {
  const LaunchPlan plan = plan_of(with_own_table("mindformers", v1::LAUNCHER_MSRUN));
  ASSERT_EQ(plan.files.size(), 2U);
  EXPECT_EQ(env(plan.ranks[2], "RANK_TABLE_FILE"), plan.files[1].path);
  EXPECT_EQ(env(plan.ranks[2], "MS_ROLE"), "MS_WORKER");
  ASSERT_EQ(plan.auxiliaries.size(), 1U);
  EXPECT_EQ(plan.auxiliaries[0].env.at("RANK_TABLE_FILE").text, plan.files[0].path);
  v1::JobSpec without = with_own_table("mindformers", v1::LAUNCHER_MSRUN);
  without.mutable_resources()->clear_rank_table();
  EXPECT_EQ(env(plan_of(without).ranks[2], "RANK_TABLE_FILE"), "(unset)");
}

// For other engines, a variable that HCCL reads would change how the ranks find each other, so only
// the user sets it.
TEST(OwnTable, OfOtherEnginesIsAFileThatATemplateNames) {
  for (const char* engine : {"torch", "megatron", "command"}) {
    v1::JobSpec spec = with_own_table(engine);
    spec.mutable_launch()->add_args("${rank_table}");
    const LaunchPlan plan = plan_of(spec);
    ASSERT_EQ(plan.files.size(), 2U) << engine;
    EXPECT_EQ(env(plan.ranks[0], "RANK_TABLE_FILE"), "(unset)") << engine;
    EXPECT_THAT(plan.ranks[0].argv, testing::Contains(plan.files[0].path)) << engine;
  }
  v1::JobSpec script = with_own_table("torch");
  script.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  script.mutable_launch()->add_args("${rank_table}");
  LaunchRequest request = request_of(script);
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    request.nodes[i].first_rank = RankNo(static_cast<std::uint32_t>(i));
    request.nodes[i].rank_count = 1;
  }
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->files.size(), 2U);
  EXPECT_THAT(plan->files[0].path, testing::EndsWith("/hccl_2s_4p.json"));
  EXPECT_THAT(plan->ranks[0].argv, testing::Contains(plan->files[0].path));
}

TEST(OwnTable, IsNoneThatMusterMakes) {
  EXPECT_FALSE(makes_rank_table(with_own_table("mindformers", v1::LAUNCHER_RANKTABLE)));
  EXPECT_TRUE(makes_rank_table(spec_of("mindformers", {})));
  EXPECT_FALSE(makes_rank_table(spec_of("mindformers", {}, 1, 1)));
  EXPECT_FALSE(makes_rank_table(spec_of("torch", {})));
}

struct Asked {
  const char* engine;
  const char* type;
  std::uint32_t devices;
  std::vector<std::uint32_t> ids;
  const char* problem_text;  // empty: nothing
};

TEST(Cards, OfAChipThatIsNamedAreCheckedAtSubmission) {
  constexpr const char* kEight = " (1, 2 or 4 of 0-3 or of 4-7, or all 8)";
  for (const Asked& one : {
           Asked{"torch",
                 "ascend910",
                 3,
                 {},
                 "3 devices; on 910 a server takes part with 1, 2, 4 or 8"},
           Asked{"megatron",
                 "ascend910",
                 6,
                 {},
                 "6 devices; on 910 a server takes part with 1, 2, 4 or 8"},
           Asked{
               "mindspeed-mm",
               "ascend910",
               0,
               {2, 3, 4, 5},
               "4 devices out of both groups of a 910 server; take them out of 0-3 or out of 4-7"},
           Asked{"mindformers",
                 "ascend910",
                 7,
                 {},
                 "7 devices; on 910 a server takes part with 1, 2, 4 or 8"},
           Asked{"torch", "ascend910", 0, {8}, "8: a 910 server has devices 0 to 7"},
           Asked{"torch", "ascend910", 4, {}, ""},
           Asked{"torch", "ascend910", 0, {4, 5, 6, 7}, ""},
           Asked{"command", "ascend910", 3, {}, ""},
           Asked{"torch", "ascend910b", 3, {}, ""},
           Asked{"torch", "ascend", 3, {}, ""},
           Asked{"torch", "auto", 3, {}, ""},
       }) {
    v1::JobSpec spec = spec_of(one.engine, {}, 1, one.devices);
    spec.mutable_resources()->set_type(one.type);
    for (const std::uint32_t id : one.ids) spec.mutable_resources()->add_device_ids(id);
    Problems problems;
    check_cards(spec, problems);
    ASSERT_EQ(problems.empty(), *one.problem_text == 0) << one.engine << " " << one.devices;
    if (problems.empty()) continue;
    EXPECT_EQ(problems[0].key, "resources.devices");
    EXPECT_EQ(problems[0].message, std::string(one.problem_text) + kEight);
    EXPECT_THAT(problem_text(spec), HasSubstr("resources.devices: " + problems[0].message))
        << "check_launch() says it";
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
    problems.clear();
    check_cards(spec, problems);
    EXPECT_TRUE(problems.empty()) << "one program does as it likes";
  }
}

TEST(Cards, HalvesThatAreJoinedByRoceAreNotBound) {
  v1::JobSpec spec = spec_of("torch", {});
  (*spec.mutable_runtime()->mutable_env())["HCCL_INTRA_ROCE_ENABLE"] = "1";
  EXPECT_EQ(binding_chip(spec, ranktable::Chip::A910B), std::nullopt);
  EXPECT_EQ(binding_chip(spec, ranktable::Chip::A910), ranktable::Chip::A910);
  spec.set_engine("mindformers");
  EXPECT_EQ(binding_chip(spec, ranktable::Chip::A910B), ranktable::Chip::A910B)
      << "a table is judged without it";
}

}  // namespace
}  // namespace muster::engine
