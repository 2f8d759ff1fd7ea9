// Control groups where this machine lets us have them; the choice between them and cookies everywhere.
#include <signal.h>

#include "tests/unit/agent_host/support.h"

namespace muster::agent {
namespace {

TEST(CgroupBase, NoneAndNonsense) {
  const auto none = choose_cgroup_base("none", kNode);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->base);
  EXPECT_FALSE(none->note.empty());
  const TempDir dir;
  const auto plain = choose_cgroup_base((dir.path() / "x").string(), kNode);
  ASSERT_FALSE(plain) << "an ordinary directory is no control group";
  EXPECT_EQ(plain.error().code, ErrorCode::InvalidArgument);
  EXPECT_FALSE(choose_cgroup_base("relative", kNode));
}

TEST(CgroupBase, AutoAlwaysSaysWhatItDid) {
  const auto choice = choose_cgroup_base("auto", NodeName("unit-test-" + std::to_string(::getpid())));
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_FALSE(choice->note.empty());
  if (choice->base) {
    EXPECT_EQ(::rmdir(choice->base->c_str()), 0) << "nothing may be left in it";
  }
}

TEST(CgroupRun, SweepFindsWhatHasEmptiedItsEnvironment) {
  const auto choice = choose_cgroup_base("auto", NodeName("unit-test-" + std::to_string(::getpid())));
  ASSERT_TRUE(choice);
  if (!choice->base) GTEST_SKIP() << choice->note;
  const TempDir dir;
  {
    HostLife life(dir.path() / "state", [&](HostOptions& options) { options.cgroup_base = choice->base; });
    life.perform(StartRun{.run = kRun, .launch = shell_launch(dir.path(), "setsid env -i sleep 1000 & exec sleep 1000")});
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    ::kill(static_cast<pid_t>(life.seen().worker_pid), SIGKILL);
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
    life.perform(SweepRun{.run = kRun, .reason = "worker died"});
    EXPECT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  EXPECT_EQ(::rmdir(choice->base->c_str()), 0) << "the run's own group is gone";
}

}  // namespace
}  // namespace muster::agent
