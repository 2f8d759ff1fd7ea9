// The host with the real worker, real processes, real files.
#include "agent/host/host.h"

#include <signal.h>

#include "common/rundir/records.h"
#include "tests/unit/agent_host/support.h"

namespace muster::agent {
namespace {

class HostTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(process::sweep_cookie(rundir::kCookieVariable, run_cookie(), 5'000)); }
  TempDir dir_;
};

TEST_F(HostTest, StartsRunsAndSeesEveryExit) {
  HostLife life(dir_.path() / "state");
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "echo hello from $RANK; exit $RANK", 3)});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  const RunSeen seen = life.seen();
  EXPECT_TRUE(seen.started);
  EXPECT_GT(seen.worker_pid, 0U);
  ASSERT_EQ(seen.exits.size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(seen.exits.at(rank).code, static_cast<std::int32_t>(rank));
    EXPECT_EQ(read_text(rundir::RunLayout(life.run_dir()).rank_log(rank)), "hello from " + std::to_string(rank) + "\n");
  }
  EXPECT_EQ(seen.swept_reason, "ended");
  EXPECT_TRUE(life.troubles().empty()) << life.troubles().front();
  EXPECT_EQ(facts_of(kRun, seen).size(), 5U);
}

TEST_F(HostTest, EnvironmentIsTheDocumentedListAndNothingOfTheAgents) {
  ::setenv("MUSTER_TEST_LEAK", "1", 1);
  HostLife life(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "/usr/bin/env | sort");
  (*launch.mutable_env())["COMMON"] = "c";
  (*launch.mutable_env())["OVER"] = "common";
  (*launch.mutable_ranks(0)->mutable_env())["OVER"] = "own";
  (*launch.mutable_ranks(0)->mutable_env())["MUSTER_COOKIE"] = "forged";
  life.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
  ::unsetenv("MUSTER_TEST_LEAK");
  const std::string env = read_text(rundir::RunLayout(life.run_dir()).rank_log(0));
  std::set<std::string> names;
  for (std::size_t at = 0; at < env.size(); at = env.find('\n', at) + 1) names.insert(env.substr(at, env.find('=', at) - at));
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "LANG", "PYTHONUNBUFFERED", "MUSTER_COOKIE", "COMMON", "OVER", "RANK"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("MUSTER_TEST_LEAK"));
  EXPECT_NE(env.find("OVER=own\n"), std::string::npos);
  EXPECT_NE(env.find("MUSTER_COOKIE=" + run_cookie() + "\n"), std::string::npos);
}

TEST_F(HostTest, StopGoesThroughTheWorkerAndIsWrittenFirst) {
  HostLife life(dir_.path() / "state");
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000", 2)});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  life.perform(SignalStop{.run = kRun});
  life.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  const RunSeen seen = life.seen();
  EXPECT_EQ(seen.swept_reason, "stopped");
  for (const auto& [rank, exit] : seen.exits) EXPECT_TRUE(exit.stop_requested);
  EXPECT_EQ(living(), 0U);
}

TEST_F(HostTest, NextLifeAdoptsAndDisturbsNothing) {
  std::uint64_t worker = 0, rank = 0;
  {
    HostLife life(dir_.path() / "state");
    life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = life.seen().worker_pid;
    rank = life.seen().pids.at(0);
  }
  HostLife life(dir_.path() / "state");
  const RunSeen seen = life.seen();
  EXPECT_EQ(seen.worker, WorkerState::Alive);
  EXPECT_TRUE(seen.started);
  EXPECT_EQ(seen.worker_pid, worker);
  EXPECT_EQ(seen.pids.at(0), rank);
  EXPECT_EQ(life.host().order(kRun)->orphan_grace().seconds(), 60);
  ::kill(static_cast<pid_t>(rank), SIGKILL);  // its exit is seen although this life did not start it
  ASSERT_TRUE(life.wait_for([](const RunSeen& run) { return run.swept && run.worker == WorkerState::Dead; }));
  EXPECT_EQ(life.seen().exits.at(0).signal, SIGKILL);
}

TEST_F(HostTest, DeadWorkerIsSeenAtOnceAndItsRanksAreSwept) {
  HostLife life(dir_.path() / "state");
  // setsid: one that left its session and its group must be found as well.
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "trap '' TERM; setsid sleep 1000 & exec sleep 1000", 2)});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  ::kill(static_cast<pid_t>(life.seen().worker_pid), SIGKILL);
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  life.perform(SweepRun{.run = kRun, .reason = "worker died"});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_EQ(living(), 0U);
  EXPECT_EQ(life.seen().swept_reason, "worker died");
}

TEST_F(HostTest, SweptByTheAgentIsRemembered) {
  {
    HostLife life(dir_.path() / "state");
    life.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "another boot"});
    life.perform(SweepRun{.run = kRun, .reason = "never started"});
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  HostLife life(dir_.path() / "state");
  const RunSeen seen = life.seen();
  EXPECT_EQ(seen.worker, WorkerState::Never);
  ASSERT_TRUE(seen.refused);
  EXPECT_EQ(seen.refused->first, v1::START_FAILURE_GONE);
  EXPECT_EQ(seen.refused->second, "another boot");
  EXPECT_TRUE(seen.swept);
}

TEST_F(HostTest, RefusalAfterTheWorkersClaimAdoptsInstead) {
  HostLife life(dir_.path() / "state");
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Alive; }));
  life.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "too late"});
  EXPECT_EQ(life.seen().worker, WorkerState::Alive);
  EXPECT_FALSE(life.seen().refused);
}

TEST_F(HostTest, ClaimedByTheAgentNeverStarts) {
  HostLife life(dir_.path() / "state");
  life.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_UNSPECIFIED, .text = "asked to stop before it was started"});
  EXPECT_EQ(life.seen().worker, WorkerState::Never);
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "echo no > ran")});
  EXPECT_EQ(life.seen().worker, WorkerState::Never);
  // A worker of an earlier life that comes late loses the claim and ends.
  const std::string command = worker_binary().string() + " " + life.run_dir().string();
  EXPECT_EQ(::system(command.c_str()), 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

TEST_F(HostTest, RestartBetweenLaunchRecordAndSpawnIsRefusedNotStartedTwice) {
  {
    HostLife life(dir_.path() / "state");
    const rundir::RunLayout layout(life.run_dir());
    ASSERT_TRUE(rundir::make_run(layout));
    rundir::v1::Launch launch;
    launch.set_version(1);
    launch.set_boot_id(process::boot_id()->str());
    launch.add_ranks();
    ASSERT_TRUE(rundir::write_launch(layout, launch));
  }
  HostLife life(dir_.path() / "state");
  EXPECT_EQ(life.seen().worker, WorkerState::None);
  EXPECT_TRUE(life.seen().launch_sound);
  std::vector<Action> actions;
  life.on_loop([&] { actions = reconcile({.instance = life.state().identity().instance, .boot_id = *process::boot_id()}, nullptr, life.host().seen(), true); });
  ASSERT_EQ(actions.size(), 1U);
  life.perform(actions[0]);
  EXPECT_EQ(life.seen().worker, WorkerState::Never);
}

TEST_F(HostTest, WorkerThatCannotBeStartedIsALaunchFailureWithASentence) {
  HostLife life(dir_.path() / "state", [](HostOptions& options) { options.worker = "/nonexistent/muster-worker"; });
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  const RunSeen seen = life.seen();
  ASSERT_TRUE(seen.refused);
  EXPECT_EQ(seen.refused->first, v1::START_FAILURE_LAUNCH);
  EXPECT_NE(seen.refused->second.find("'/nonexistent/muster-worker'"), std::string::npos) << seen.refused->second;
}

TEST_F(HostTest, WorkerThatDiesBeforeItsClaimLeavesAnUnclaimedRun) {
  HostLife life(dir_.path() / "state", [](HostOptions& options) { options.worker = "/bin/true"; });
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::None && seen.launch_sound; }));
}

TEST_F(HostTest, ForgetRemovesTheDirectory) {
  HostLife life(dir_.path() / "state");
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  life.perform(ForgetRun{.run = kRun});
  EXPECT_FALSE(life.holds());
  EXPECT_FALSE(std::filesystem::exists(life.run_dir()));
}

TEST_F(HostTest, HalfRemovedDirectoryOfACrashIsNotARun) {
  {
    HostLife life(dir_.path() / "state");
    std::filesystem::create_directories(life.state().layout().runs() / (".gone-" + kRun.first.str() + ".1") / "logs");
  }
  {
    HostLife life(dir_.path() / "state");
  }  // its disposal has run when it is gone
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path() / "state/runs"));
}

TEST_F(HostTest, MarksOfTheWatchSurvive) {
  {
    HostLife life(dir_.path() / "state");
    life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exit 3", 2)});
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.swept; }));
    life.on_loop([&] {
      life.host().note_first_step(kRun, 7);
      life.host().note_first_step(kRun, 9);
      life.host().note_rank_end(kRun, 0, "ValueError: x", true);
      life.host().note_rank_end(kRun, 1, "", false);
    });
  }
  HostLife life(dir_.path() / "state");
  const RunSeen seen = life.seen();
  EXPECT_EQ(seen.first_step, 7);
  EXPECT_EQ(seen.exits.at(0).evidence, "ValueError: x");
  EXPECT_TRUE(seen.exits.at(0).success_seen);
  EXPECT_EQ(seen.exits.at(1).evidence, "");
  life.on_loop([&] {
    EXPECT_TRUE(life.host().rank_end_known(kRun, 1)) << "read to its end, and nothing was there";
    EXPECT_FALSE(life.host().rank_end_known(kRun, 2));
  });
}

TEST_F(HostTest, LeaseIsThereBeforeTheWorkerAndGrowsOnlyByWhatCounts) {
  HostLife life(dir_.path() / "state");
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.started; }));
  const rundir::RunLayout layout(life.run_dir());
  const auto until = [&] { return *rundir::lease_end(**rundir::read_lease(layout), *process::boot_id()); };
  const BootTime first = until();
  const BootTime now = system_clock().now().boot;
  EXPECT_LE(first, now + std::chrono::seconds(60));
  EXPECT_GT(first, now + std::chrono::seconds(50));
  life.on_loop([&] { life.host().renew_leases(now + std::chrono::seconds(2)); });
  EXPECT_EQ(until(), first) << "a tenth of the grace (6 s) is not gained yet";
  life.on_loop([&] { life.host().renew_leases(now + std::chrono::seconds(10)); });
  EXPECT_EQ(until(), now + std::chrono::seconds(70));
  life.on_loop([&] { life.host().renew_leases(now); });
  EXPECT_EQ(until(), now + std::chrono::seconds(70)) << "never shortened by an older pulse";
}

}  // namespace
}  // namespace muster::agent
