// Files of a run directory, or all of it, removed under a living run: by a cleaner of temporary
// files, or by hand. Nothing of the run may live on unseen.
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/agent_host/support.h"

namespace muster::agent {
namespace {

class LostFiles : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_cookie(rundir::kCookieVariable, run_cookie(), 5'000));
  }
  void start(HostLife& life) {
    life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000", 2)});
    ASSERT_TRUE(life.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  }
  // As a start does, without orders.
  static void reconcile_once(HostLife& life, bool starting_up) {
    life.on_loop([&] {
      const Self self{.instance = life.state().identity().instance, .boot_id = *process::boot_id()};
      for (const Action& action : reconcile(self, nullptr, life.host().seen(), starting_up))
        life.host().perform(action);
    });
  }
  TempDir dir_;
};

// The agent claimed the run itself, said that it had never started, and the next attempt got the
// devices of ranks that lived.
TEST_F(LostFiles, ALostClaimIsNoProofThatNothingRuns) {
  for (const std::vector<std::string>& lost : std::vector<std::vector<std::string>>{
           {"claim"}, {"claim", "events"}, {"claim", "events", "launch"}}) {
    SCOPED_TRACE(lost.back());
    pid_t worker = 0;
    {
      HostLife life(dir_.path() / "state");
      start(life);
      worker = static_cast<pid_t>(life.seen().worker_pid);
      for (const std::string& name : lost)
        ASSERT_TRUE(std::filesystem::remove(life.run_dir() / name));
    }
    HostLife life(dir_.path() / "state");
    EXPECT_EQ(life.seen().worker, WorkerState::None);
    reconcile_once(life, true);
    reconcile_once(life, false);
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
    EXPECT_EQ(living(), 0U) << "two attempts at once on one device";
    EXPECT_EQ(life.seen().refused.has_value(), lost.size() > 1)
        << "its worker had told that it ran";
    EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
    life.perform(ForgetRun{.run = kRun});
    EXPECT_FALSE(life.holds());
  }
}

// What the sweep wrote down nobody could read: it was asked for again, every second, and the run
// never ended.
TEST_F(LostFiles, ARunWhoseDirectoryIsGoneEnds) {
  HostLife life(dir_.path() / "state");
  start(life);
  life.on_loop([&] { life.host().note_first_step(kRun, 7); });  // its mark file is open
  std::filesystem::remove_all(life.run_dir());
  for (const auto& [rank, pid] : life.seen().pids)
    ASSERT_EQ(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  reconcile_once(life, false);
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_EQ(living(), 0U);
  std::vector<int> kinds;
  for (const v1::Fact& fact : facts_of(kRun, life.seen())) kinds.push_back(fact.what_case());
  EXPECT_EQ(kinds, (std::vector<int>{v1::Fact::kStarted, v1::Fact::kFirstStep, v1::Fact::kExited,
                                     v1::Fact::kExited, v1::Fact::kSwept}));
  const auto said = life.troubles();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said.front().find("has been removed (by a cleaner of temporary files?)"),
            std::string::npos)
      << said.front();
  EXPECT_NE(said.back().find("its mark file has been removed; kept in memory"), std::string::npos)
      << said.back();
  life.perform(ForgetRun{.run = kRun});
  EXPECT_FALSE(life.holds());
}

// Removed before its worker could claim it: the refusal, too, was tried again every second.
TEST_F(LostFiles, ARunWhoseDirectoryWasGoneBeforeItsClaimEnds) {
  HostLife life(dir_.path() / "state", [](HostOptions& options) { options.worker = "/bin/true"; });
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(life.wait_for(
      [](const RunSeen& seen) { return seen.worker == WorkerState::None && seen.launch_sound; }));
  std::filesystem::remove_all(life.run_dir());
  reconcile_once(life, false);
  EXPECT_EQ(life.seen().worker, WorkerState::Never);
  reconcile_once(life, false);
  EXPECT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.refused && seen.swept; }));
}

}  // namespace
}  // namespace muster::agent
