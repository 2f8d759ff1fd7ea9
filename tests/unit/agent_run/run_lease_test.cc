#include "agent/run/run_lease.h"

#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

const BootId kBoot{"b-1"};
constexpr BootTime kHeard{seconds(1000)};

class RunLeaseTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rundir::make_run(layout_)); }
  BootTime stored() {
    const auto lease = rundir::read_lease(layout_);
    EXPECT_TRUE(lease && *lease);
    return rundir::lease_end(**lease, kBoot).value_or(BootTime());
  }
  bool renew(BootTime heard, Duration grace, bool at_start = false) {
    return lease_.renew(layout_, kBoot, heard, grace, at_start).has_value();
  }
  TempDir dir_;
  rundir::RunLayout layout_{dir_.path() / "run"};
  RunLease lease_;
};

// The step of a grace of 60 s is 6 s.
TEST_F(RunLeaseTest, IsRewrittenWhenAStepIsGained) {
  ASSERT_TRUE(renew(kHeard, seconds(60), true));
  EXPECT_EQ(stored(), kHeard + seconds(66));
  ASSERT_TRUE(renew(kHeard + seconds(5), seconds(60)));
  EXPECT_EQ(stored(), kHeard + seconds(66)) << "less than a step";
  ASSERT_TRUE(renew(kHeard + seconds(6), seconds(60)));
  EXPECT_EQ(stored(), kHeard + seconds(72));
  EXPECT_EQ(lease_.until(), kHeard + seconds(72));
}

TEST_F(RunLeaseTest, AtAStartIsWrittenInAnyCase) {
  ASSERT_TRUE(renew(kHeard, seconds(60), true));
  ASSERT_TRUE(renew(kHeard + seconds(1), seconds(60), true));
  EXPECT_EQ(stored(), kHeard + seconds(67));
}

TEST_F(RunLeaseTest, OfAnEarlierIncarnationCounts) {
  ASSERT_TRUE(renew(kHeard, seconds(60), true));
  RunLease next;
  next.adopt(layout_, kBoot);
  EXPECT_EQ(next.until(), kHeard + seconds(66));
  RunLease of_another_boot;
  of_another_boot.adopt(layout_, BootId("b-2"));
  EXPECT_EQ(of_another_boot.until(), std::nullopt);
}

TEST_F(RunLeaseTest, ThatTheDiskRefusesStaysAsItWas) {
  ASSERT_TRUE(renew(kHeard, seconds(60), true));
  std::filesystem::remove_all(dir_.path() / "run");
  EXPECT_FALSE(renew(kHeard + seconds(30), seconds(60)));
  EXPECT_TRUE(lease_.refused());
  EXPECT_TRUE(lease_.first_refusal());
  EXPECT_FALSE(renew(kHeard + seconds(31), seconds(60)));
  EXPECT_FALSE(lease_.first_refusal()) << "reported once";
  EXPECT_EQ(lease_.until(), kHeard + seconds(66));
  ASSERT_TRUE(rundir::make_run(layout_));
  ASSERT_TRUE(renew(kHeard + seconds(32), seconds(60)));
  EXPECT_FALSE(lease_.refused());
}

}  // namespace
}  // namespace muster::agent
