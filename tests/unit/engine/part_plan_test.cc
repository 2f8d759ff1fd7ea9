// A plan of some ranks equals those ranks of the whole plan: what a node is sent does not depend on
// how much was planned with it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/model/engine.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;

class PartPlanTest : public testing::TestWithParam<const char*> {
 protected:
  PartPlanTest() {
    spec_.set_name("tiny");
    spec_.set_engine(GetParam());
    spec_.mutable_code()->set_at("/srv");
    spec_.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
    spec_.mutable_launch()->set_script("train.py");
    spec_.mutable_launch()->add_args(
        "${rank}/${world_size} on ${node.rank} of ${nodes}, ${device_id}");
    (*spec_.mutable_runtime()->mutable_env())["SHARD"] = "${local_rank}";
    spec_.mutable_success()->set_file("done-${rank}");
    request_ = {.spec = &spec_, .job_id = "01j8x4a0b7c2d", .attempt = 1, .master_port = 29500};
    for (std::uint32_t i = 0; i < 4; ++i) {
      request_.nodes.push_back(
          {.node = NodeName("n" + std::to_string(i)),
           .address = "10.0.0." + std::to_string(i),
           .devices = {2, 5, 6},
           .first_rank = RankNo(3 * i),
           .rank_count = 3,
           .device_type = "nvidia",
           .device_ips = {fmt::format("10.1.{}.2", i), fmt::format("10.1.{}.5", i),
                          fmt::format("10.1.{}.6", i)}});
    }
    request_.out_dir = out_dir(spec_, request_.job_id, "/out");
    request_.save_dir = save_dir(spec_, request_.out_dir, request_.attempt);
  }
  static std::vector<std::uint32_t> ranks(const LaunchPlan& plan) {
    std::vector<std::uint32_t> numbers;
    for (const RankPlan& rank : plan.ranks) numbers.push_back(rank.rank);
    return numbers;
  }
  LaunchPlan planned(std::optional<RankRange> only) {
    request_.only = only;
    auto plan = plan_launch(request_);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? *std::move(plan) : LaunchPlan();
  }

  v1::JobSpec spec_;
  LaunchRequest request_;
};

TEST_P(PartPlanTest, IsThoseRanksOfTheWhole) {
  const LaunchPlan whole = planned(std::nullopt);
  ASSERT_EQ(whole.ranks.size(), 12u);
  for (std::size_t node = 0; node < request_.nodes.size(); ++node) {
    const auto first = static_cast<std::uint32_t>(3 * node);
    const LaunchPlan part = planned(RankRange{.first = first, .count = 3});
    EXPECT_EQ(node_launch(request_, part, node).SerializeAsString().size(),
              node_launch(request_, whole, node).SerializeAsString().size());
    for (std::uint32_t rank = first; rank < first + 3; ++rank) {
      ASSERT_NE(part.find(rank), nullptr);
      EXPECT_EQ(part.find(rank)->argv, whole.ranks[rank].argv);
      EXPECT_EQ(part.find(rank)->node, node);
      EXPECT_EQ(part.find(rank)->local_rank, rank - first);
      EXPECT_EQ(part.find(rank)->devices, whole.ranks[rank].devices);
      EXPECT_TRUE(std::ranges::equal(part.find(rank)->env, whole.ranks[rank].env,
                                     [](const auto& a, const auto& b) {
                                       return a.first == b.first && a.second.text == b.second.text;
                                     }));
    }
    EXPECT_EQ(part.watching.SerializeAsString(), whole.watching.SerializeAsString())
        << "what is said once is by rank 0";
  }
}

TEST_P(PartPlanTest, HasNoOthersButRankZero) {
  EXPECT_THAT(ranks(planned(RankRange{.first = 7, .count = 1})), ElementsAre(0, 7));
  EXPECT_THAT(ranks(planned(RankRange{.first = 0, .count = 3})), ElementsAre(0, 1, 2));
  EXPECT_THAT(ranks(planned(RankRange{.first = 5, .count = 0})), ElementsAre(0));
  EXPECT_EQ(planned(RankRange{.first = 7, .count = 1}).find(6), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, PartPlanTest,
                         testing::Values("torch", "command", "megatron", "mindspeed-mm",
                                         "mindformers"));

}  // namespace
}  // namespace muster::engine
