// checkpoint.storage: local: which directories of other nodes each node's start fetches.
#include "common/engine/model/fetches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/engine/model/resume_plan.h"
#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> listed(const LaunchRequest& request, std::size_t node) {
  std::vector<std::string> all;
  for (const v1::Fetch& fetch : fetches(request, node)) {
    const std::vector<std::string> only(fetch.only().begin(), fetch.only().end());
    all.push_back(fmt::format("{} {}{}{}", fetch.node(), fetch.path(),
                              fetch.layout().empty() ? "" : fmt::format(" step {}", fetch.step()),
                              only.empty() ? "" : fmt::format(" {}", fmt::join(only, " "))));
  }
  return all;
}

v1::JobSpec own_disks() {
  v1::JobSpec spec = spec_of("mindformers", {});
  spec.mutable_checkpoint()->set_layout("mindformers");
  spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
  return spec;
}

TEST(Fetch, EachNodeGetsTheShardsOfItsOwnRanksThatOthersHave) {
  v1::JobSpec spec = own_disks();
  LaunchRequest request = request_of(spec);
  resume_at(request, 8);
  request.resume_holders = {{.node = NodeName("n9"), .first_rank = RankNo(0), .ranks = 1},
                            {.node = NodeName("n2"), .first_rank = RankNo(1), .ranks = 2},
                            {.node = NodeName("n8"), .first_rank = RankNo(3), .ranks = 1}};
  const std::string from = request.resume_source;
  EXPECT_THAT(listed(request, 0),
              ElementsAre("n9 " + from + " step 8 rank_0", "n2 " + from + " step 8 rank_1"));
  EXPECT_THAT(listed(request, 1), ElementsAre("n8 " + from + " step 8 rank_3"))
      << "rank 2's is its own";
  request.resume_holders = {{.node = NodeName("n7")}};
  EXPECT_THAT(listed(request, 1), ElementsAre("n7 " + from + " step 8 rank_2 rank_3"))
      << "one that has them all";
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const v1::NodeLaunch launch = node_launch(request, *plan, 1);
  EXPECT_EQ(launch.fetches_size(), 1);
  EXPECT_EQ(launch.resume().first_rank(), 2U);
  EXPECT_EQ(launch.resume().ranks(), 2U);
  spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_SHARED);
  EXPECT_THAT(listed(request, 1), IsEmpty());
  EXPECT_EQ(node_launch(request, *plan, 1).fetches_size(), 0);
  EXPECT_EQ(node_launch(request, *plan, 1).resume().ranks(), 0U) << "all have to be there";
}

TEST(Fetch, NothingIsFetchedForAFirstStartNorOfOtherLayouts) {
  v1::JobSpec spec = own_disks();
  LaunchRequest request = request_of(spec);
  request.resume_holders = {{.node = NodeName("n9")}};
  EXPECT_THAT(listed(request, 0), IsEmpty());
  resume_at(request, 8);
  spec.mutable_checkpoint()->set_layout("megatron");
  EXPECT_THAT(listed(request, 0), IsEmpty());
}

TEST(Fetch, TheTransformGetsAllOfBothSizes) {
  v1::JobSpec before = own_disks();
  const v1::ResolvedSpec nothing;
  ResumeAsk ask{.before = &before,
                .resolved = &nothing,
                .job_id = "01j8x4a0b7c2d",
                .checkpoint = {.step = 40,
                               .path = "/out/j/checkpoints/attempt-2/checkpoint",
                               .save_dir = "/out/j/checkpoints/attempt-2",
                               .shards = 4},
                .after = before,
                .name = "tiny-r2"};
  ask.after.mutable_resources()->set_nodes(1);
  ask.after.mutable_checkpoint()->set_dir("/nvme/ckpt");
  auto planned = plan_resume(ask);
  ASSERT_TRUE(planned.has_value());
  std::vector<v1::JobSpec>& jobs = planned->jobs;
  ASSERT_EQ(jobs.size(), 3U);
  for (const v1::JobSpec& spec : jobs)
    EXPECT_EQ(spec.checkpoint().storage(), v1::CHECKPOINT_STORAGE_LOCAL);
  EXPECT_EQ(jobs[0].checkpoint().dir(), "") << "disks of the nodes' own are no storage apart";
  EXPECT_EQ(jobs[2].start().from(), "stage:transform/resharded");
  const v1::JobSpec& transform = jobs[1];
  ASSERT_EQ(planned->fetches.size(), 1U);
  EXPECT_EQ(planned->fetches[0].job_name(), transform.name());
  v1::ResolvedSpec resolved;
  *resolved.mutable_fetches() = planned->fetches[0].fetches();
  v1::StageDir& dir = *resolved.mutable_stage()->add_dirs();
  dir.set_stage("strategy");
  dir.set_out("/out/s");
  LaunchRequest request = request_of(transform, 1, {0});
  request.resolved = &resolved;
  resume_at(request, 40);
  request.resume_source = ask.checkpoint.save_dir;
  request.resume_holders = {{.node = NodeName("n1"), .first_rank = RankNo(0), .ranks = 2},
                            {.node = NodeName("n2"), .first_rank = RankNo(2), .ranks = 2}};
  request.stage_shards["strategy"] = {
      .attempt = AttemptNo(3),
      .holders = {{.node = NodeName("n4"), .first_rank = RankNo(0), .ranks = 2}}};
  EXPECT_THAT(listed(request, 0), ElementsAre("n2 /out/j/checkpoints/attempt-2 step 40",
                                              "n2 /out/j/checkpoints/attempt-2/strategy",
                                              "n4 /out/s/checkpoints/attempt-3/strategy"));
}

TEST(Fetch, OfStorageThatIsSharedNoChainFetchesAnything) {
  v1::JobSpec before = own_disks();
  before.mutable_checkpoint()->clear_storage();
  const v1::ResolvedSpec nothing;
  ResumeAsk ask{
      .before = &before,
      .resolved = &nothing,
      .job_id = "j",
      .checkpoint = {.step = 4, .path = "/o/a/checkpoint", .save_dir = "/o/a", .shards = 4},
      .after = before,
      .name = "r"};
  ask.after.mutable_resources()->set_nodes(1);
  const auto planned = plan_resume(ask);
  ASSERT_TRUE(planned.has_value());
  EXPECT_THAT(planned->fetches, IsEmpty());
}

}  // namespace
}  // namespace muster::engine
