#include "agent/logs/full_disk.h"

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

class FullDiskTest : public SubjectTest {};

TEST_F(FullDiskTest, ExplainsOnlyAFailureWithoutAReasonOnADiskThatIsFull) {
  std::uint64_t free = 100;
  options_.free_bytes = [&](const std::filesystem::path& at) {
    EXPECT_EQ(at, "/runs") << "a job may replace what is below";
    return free;
  };
  FullDisk disk(tools(), "/runs/job.1/logs");
  const auto evidence = [&](RankEnding ending) {
    EXPECT_TRUE(disk.explain(ending));
    return ending.answer.evidence;
  };
  EXPECT_EQ(evidence(ending_of(0, true)),
            "No space left on device: the disk of '/runs/job.1/logs' is full, so that the rank's "
            "log may end before it could say why");
  EXPECT_EQ(evidence(ending_of(0, false)), "");
  RankEnding known = ending_of(0, true);
  known.answer.evidence = "ValueError: x";
  EXPECT_EQ(evidence(known), "ValueError: x");
  free = 1 << 20;
  EXPECT_EQ(evidence(ending_of(0, true)), "");
}

}  // namespace
}  // namespace muster::agent
