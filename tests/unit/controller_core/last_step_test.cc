#include "controller/core/recovery/last_step.h"

#include <gmock/gmock.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

struct ReportedSteps {
  std::optional<std::int64_t> step, total;
};

std::string missing(const std::vector<ReportedSteps>& ranks) {
  JobRecord job;
  job.spec = SmallWorld::spec("a", 1, 2);
  AttemptRecord& attempt = job.attempts.emplace_back();
  attempt.number = AttemptNo(1);
  NodePart& part = attempt.parts.emplace_back();
  part.placed.node = NodeName("n0");
  part.placed.rank_count = static_cast<std::uint32_t>(ranks.size());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    RankExited exit;
    exit.step = ranks[rank].step;
    exit.total = ranks[rank].total;
    part.exits.emplace(RankNo(rank), exit);
  }
  return last_step_missing(job, attempt);
}

// Regression: one rank prints the total, another one the last step. Neither alone showed the end,
// and the job was declared failed at step 100 of 100.
TEST(LastStep, TheLastStepThatIsReportedIsReachedWhoeverKnowsTheTotal) {
  EXPECT_EQ(missing({{{}, 100}, {100, {}}}), "");
  EXPECT_EQ(missing({{101, 100}}), "");
  EXPECT_THAT(missing({{{}, 100}, {99, {}}}),
              HasSubstr("after step 99 of 100: the training did not reach its last step"));
  EXPECT_THAT(missing({{100, {}}}), HasSubstr("no line reports how many there are"));
  EXPECT_THAT(missing({{}}), HasSubstr("no step line was seen"));
}

}  // namespace
}  // namespace muster::core
