// A worker that lives and does nothing: stopped by SIGSTOP, as by a debugger or a batch system. Its
// ranks continue, and only the agent can end them.
#include <signal.h>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

class FrozenWorker : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  static void patience(HostOptions& options) { options.worker_margin = milliseconds(200); }
  v1::NodeLaunch launch(milliseconds orphan_grace) {
    v1::NodeLaunch launch = shell_launch(dir_.path(), "exec sleep 1000", 2);
    launch.mutable_orphan_grace()->set_seconds(orphan_grace.count() / 1000);
    launch.mutable_orphan_grace()->set_nanos(
        static_cast<std::int32_t>(orphan_grace.count() % 1000) * 1'000'000);
    launch.mutable_stop_grace()->set_seconds(0);
    launch.mutable_stop_grace()->set_nanos(100'000'000);
    return launch;
  }
  // Its ranks run, and nobody supervises them.
  static void start_and_freeze(HostIncarnation& agent, const v1::NodeLaunch& launch) {
    agent.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    ASSERT_EQ(::kill(static_cast<pid_t>(agent.seen().worker_pid), SIGSTOP), 0);
  }
  static void expect_swept(HostIncarnation& agent) {
    ASSERT_TRUE(
        agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
    EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
    EXPECT_EQ(living(), 0U);
    const auto logged = agent.troubles();
    ASSERT_EQ(logged.size(), 1U);
    EXPECT_NE(logged.front().find("it is killed, its ranks with it"), std::string::npos)
        << logged.front();
  }
  TempDir dir_;
};

// Regression: SIGTERM stayed pending for ever, and the job could not be cancelled.
TEST_F(FrozenWorker, IsKilledWhenItDoesNotObeyAStop) {
  HostIncarnation agent(dir_.path() / "state", patience);
  start_and_freeze(agent, launch(std::chrono::minutes(1)));
  EXPECT_EQ(living(), 3U) << "the worker and its ranks";
  agent.perform(SignalStop{.run = kRun});
  expect_swept(agent);
}

// Regression: only the worker watched the lease, so its ranks ran in parallel with those of the
// next attempt.
TEST_F(FrozenWorker, IsKilledAtTheEndOfItsLease) {
  HostIncarnation agent(dir_.path() / "state", patience);
  start_and_freeze(agent, launch(std::chrono::seconds(3)));
  expect_swept(agent);
  EXPECT_FALSE(agent.seen().stop_requested);
}

// The agent of a later incarnation uses the lease in the record, whatever the earlier incarnation
// received from the controller.
TEST_F(FrozenWorker, IsKilledByTheAgentThatAdoptsIt) {
  {
    HostIncarnation agent(dir_.path() / "state");
    start_and_freeze(agent, launch(std::chrono::seconds(3)));
  }
  HostIncarnation agent(dir_.path() / "state", patience);
  EXPECT_EQ(agent.seen().worker, WorkerState::Alive);
  expect_swept(agent);
}

// Regression: nobody noticed that its ranks had ended, and the job ran for ever.
TEST_F(FrozenWorker, IsKilledWhenItsRanksHaveEnded) {
  HostIncarnation agent(dir_.path() / "state", patience);
  start_and_freeze(agent, launch(std::chrono::minutes(1)));
  for (const auto& [rank, pid] : agent.seen().pids)
    ASSERT_EQ(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
  expect_swept(agent);
  EXPECT_FALSE(agent.seen().stop_requested);
}

// The same, frozen by its rank: the worker may not even have recorded that all ranks are started.
TEST_F(FrozenWorker, IsKilledWhenItsRankHasFrozenItAndEnded) {
  v1::NodeLaunch wanted = shell_launch(dir_.path(), "kill -STOP $PPID; exit 5");
  HostIncarnation agent(dir_.path() / "state", patience);
  agent.perform(StartRun{.run = kRun, .launch = wanted});
  expect_swept(agent);
}

TEST_F(FrozenWorker, OneWithALivingRankIsLeftAlone) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.worker_margin = milliseconds(20); });
  start_and_freeze(agent, launch(std::chrono::minutes(1)));
  const auto pids = agent.seen().pids;
  ASSERT_EQ(pids.size(), 2U);
  ASSERT_EQ(::kill(static_cast<pid_t>(pids.at(0)), SIGKILL), 0);
  EXPECT_FALSE(agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; },
                              std::chrono::seconds(1)));
  ASSERT_EQ(::kill(static_cast<pid_t>(pids.at(1)), SIGKILL), 0);
  expect_swept(agent);
}

TEST_F(FrozenWorker, OneThatObeysEndsByItself) {
  // with the normal patience, because a busy machine may be slow
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{.run = kRun, .launch = launch(std::chrono::minutes(1))});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(agent.seen().swept_why, v1::SWEPT_WHY_STOPPED);
  EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
}

}  // namespace
}  // namespace muster::agent
