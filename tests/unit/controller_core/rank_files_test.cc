#include "controller/core/placement/rank_files.h"

#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

TEST(RankFiles, EveryRankHasToHaveItsOwn) {
  JobRecord job;
  job.spec = SmallWorld::spec("a", 2, 2);
  job.spec.mutable_success()->set_rank_file("${save.dir}/rank_${rank}/of_${rank}");
  AttemptRecord& attempt = job.attempts.emplace_back();
  for (std::uint32_t node = 0; node < 2; ++node) {
    NodePart& part = attempt.parts.emplace_back();
    part.placed.node = NodeName("n" + std::to_string(node));
    for (std::uint32_t rank = 2 * node; rank < 2 * node + 2; ++rank)
      part.exits[RankNo(rank)].success_seen = true;
  }
  EXPECT_EQ(rank_file_missing(job, attempt), "");
  attempt.parts[1].exits[RankNo(2)].success_seen = false;
  attempt.parts[1].exits[RankNo(3)].success_seen = false;
  EXPECT_EQ(rank_file_missing(job, attempt),
            "every rank ended with status 0, but rank 2 on node 'n1' has not written 'rank_2/of_2' "
            "below its save directory (MUSTER_SAVE_DIR of `muster env " +
                job.spec.name() + " --rank 2`)");
}

}  // namespace
}  // namespace muster::core
