// Files of a run directory, or all of it, are removed during a run: by a cleaner of temporary
// files, or by hand. Nothing of the run may live on unnoticed.
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

class LostFiles : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  void start(HostIncarnation& agent) {
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000", 2)});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  }
  // As a start does, without orders.
  static void reconcile_once(HostIncarnation& agent, bool starting_up) {
    agent.on_loop([&] {
      const Self self{.instance = agent.state().identity().instance,
                      .boot_id = *process::boot_id()};
      for (const Action& action : reconcile(self, nullptr, agent.host().seen(), starting_up))
        agent.host().perform(action);
    });
  }
  TempDir dir_;
};

// Regression: the agent claimed the run itself and reported that it had never started, and the next
// attempt got the devices of living ranks.
TEST_F(LostFiles, ALostClaimIsNoProofThatNothingRuns) {
  for (const std::vector<std::string>& lost : std::vector<std::vector<std::string>>{
           {"claim"}, {"claim", "events"}, {"claim", "events", "launch"}}) {
    SCOPED_TRACE(lost.back());
    pid_t worker = 0;
    {
      HostIncarnation agent(dir_.path() / "state");
      start(agent);
      worker = static_cast<pid_t>(agent.seen().worker_pid);
      for (const std::string& name : lost)
        ASSERT_TRUE(std::filesystem::remove(agent.run_dir() / name));
    }
    HostIncarnation agent(dir_.path() / "state");
    EXPECT_EQ(agent.seen().worker, WorkerState::None);
    reconcile_once(agent, true);
    reconcile_once(agent, false);
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
    EXPECT_EQ(living(), 0U) << "two attempts at once on one device";
    EXPECT_EQ(agent.seen().refused.has_value(), lost.size() > 1)
        << "its worker had told that it ran";
    EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
    agent.perform(ForgetRun{.run = kRun});
    EXPECT_FALSE(agent.holds());
  }
}

// Regression: nobody could read what the sweep recorded. The sweep was repeated every second, and
// the run never ended.
TEST_F(LostFiles, ARunWhoseDirectoryIsGoneEnds) {
  HostIncarnation agent(dir_.path() / "state");
  start(agent);
  agent.on_loop([&] { agent.host().note_first_step(kRun, 7); });  // its mark file is open
  std::filesystem::remove_all(agent.run_dir());
  for (const auto& [rank, pid] : agent.seen().pids)
    ASSERT_EQ(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  reconcile_once(agent, false);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_EQ(living(), 0U);
  std::vector<int> kinds;
  for (const v1::Fact& fact : facts_of(kRun, agent.seen())) kinds.push_back(fact.what_case());
  EXPECT_EQ(kinds, (std::vector<int>{v1::Fact::kStarted, v1::Fact::kFirstStep, v1::Fact::kExited,
                                     v1::Fact::kExited, v1::Fact::kSwept}));
  const auto logged = agent.troubles();
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_NE(logged.front().find("has been removed (by a cleaner of temporary files?)"),
            std::string::npos)
      << logged.front();
  EXPECT_NE(logged.back().find("its mark file has been removed; kept in memory"), std::string::npos)
      << logged.back();
  agent.perform(ForgetRun{.run = kRun});
  EXPECT_FALSE(agent.holds());
}

// Removed before its worker could claim it. Regression: the refusal, too, was repeated every
// second.
TEST_F(LostFiles, ARunWhoseDirectoryWasGoneBeforeItsClaimEnds) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.worker = "/bin/true"; });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.worker == WorkerState::None && seen.launch_sound; }));
  std::filesystem::remove_all(agent.run_dir());
  reconcile_once(agent, false);
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
  reconcile_once(agent, false);
  EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused && seen.swept; }));
}

}  // namespace
}  // namespace muster::agent
