// The host with the real worker, real processes, real files.
#include "agent/run/host.h"

#include <signal.h>

#include "agent/run/run_view.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"
#include "tests/unit/process/stranger.h"

namespace muster::agent {
namespace {

class HostTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  TempDir dir_;
};

TEST_F(HostTest, StartsRunsAndSeesEveryExit) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{
      .run = kRun, .launch = shell_launch(dir_.path(), "echo hello from $RANK; exit $RANK", 3)});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  const RunSeen seen = agent.seen();
  EXPECT_TRUE(seen.started);
  EXPECT_GT(seen.worker_pid, 0U);
  ASSERT_EQ(seen.exits.size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(seen.exits.at(rank).code, static_cast<std::int32_t>(rank));
    EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(rank)),
              "hello from " + std::to_string(rank) + "\n");
  }
  EXPECT_EQ(seen.swept_why, v1::SWEPT_WHY_ENDED);
  EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
  EXPECT_EQ(facts_of(kRun, seen).size(), 5U);
}

TEST_F(HostTest, EnvironmentIsTheDocumentedListAndNothingOfTheAgents) {
  ::setenv("MUSTER_TEST_LEAK", "1", 1);
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "/usr/bin/env | sort");
  (*launch.mutable_env())["COMMON"] = "c";
  (*launch.mutable_env())["OVER"] = "common";
  (*launch.mutable_ranks(0)->mutable_env())["OVER"] = "own";
  (*launch.mutable_ranks(0)->mutable_env())["MUSTER_PROCESS_TAG"] = "forged";
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  ::unsetenv("MUSTER_TEST_LEAK");
  const std::string env = read_text(rundir::RunLayout(agent.run_dir()).rank_log(0));
  std::set<std::string> names;
  for (std::size_t at = 0; at < env.size(); at = env.find('\n', at) + 1)
    names.insert(env.substr(at, env.find('=', at) - at));
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "LANG", "PYTHONUNBUFFERED",
                           "MUSTER_PROCESS_TAG", "COMMON", "OVER", "RANK"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("MUSTER_TEST_LEAK"));
  EXPECT_NE(env.find("OVER=own\n"), std::string::npos);
  EXPECT_NE(env.find("MUSTER_PROCESS_TAG=" + run_process_tag() + "\n"), std::string::npos);
}

TEST_F(HostTest, StopGoesThroughTheWorkerAndIsWrittenFirst) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000", 2)});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  agent.perform(SignalStop{.run = kRun});
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  const RunSeen seen = agent.seen();
  EXPECT_EQ(seen.swept_why, v1::SWEPT_WHY_STOPPED);
  for (const auto& [rank, exit] : seen.exits) EXPECT_TRUE(exit.stop_requested);
  EXPECT_EQ(living(), 0U);
}

TEST_F(HostTest, TheNextIncarnationAdoptsAndDisturbsNothing) {
  std::uint64_t worker = 0, rank = 0;
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = agent.seen().worker_pid;
    rank = agent.seen().pids.at(0);
  }
  HostIncarnation agent(dir_.path() / "state");
  const RunSeen seen = agent.seen();
  EXPECT_EQ(seen.worker, WorkerState::Alive);
  EXPECT_TRUE(seen.started);
  EXPECT_EQ(seen.worker_pid, worker);
  EXPECT_EQ(seen.pids.at(0), rank);
  EXPECT_EQ(agent.read_run()->order().orphan_grace().seconds(), 60);
  // its exit is noticed although this incarnation did not start it
  ::kill(static_cast<pid_t>(rank), SIGKILL);
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& run) { return run.swept && run.worker == WorkerState::Dead; }));
  EXPECT_EQ(agent.seen().exits.at(0).signal, SIGKILL);
}

// As on a file system without FIFOs: exits must be noticed all the same, and soon.
TEST_F(HostTest, ARunWithoutAWakeFifoIsScanned) {
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000", 2)});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    std::filesystem::remove(rundir::RunLayout(agent.run_dir()).wake_fifo());
  }
  HostIncarnation agent(dir_.path() / "state");
  ::kill(static_cast<pid_t>(agent.seen().pids.at(1)), SIGKILL);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.exits.contains(1); }))
      << "rank 0 lives: no end of a worker tells of it";
  EXPECT_EQ(agent.seen().worker, WorkerState::Alive);
  ASSERT_EQ(agent.troubles().size(), 1U);
  EXPECT_NE(agent.troubles().front().find("it is scanned every 50 ms instead"), std::string::npos)
      << agent.troubles().front();
  agent.perform(SignalStop{.run = kRun});
  EXPECT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(agent.troubles().size(), 1U) << "said once";
}

TEST_F(HostTest, TakesNoInotifyInstanceAndKeepsNoWakeFifoOfARunThatIsOver) {
  const auto open_files = [] {
    std::multiset<std::string> targets;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      targets.insert(std::filesystem::read_symlink(entry.path(), ignored).string());
    return targets;
  };
  HostIncarnation agent(dir_.path() / "state");
  const std::string wake_fifo = rundir::RunLayout(agent.run_dir()).wake_fifo().string();
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  EXPECT_FALSE(open_files().contains("anon_inode:inotify"));
  EXPECT_EQ(open_files().count(wake_fifo), 1U);
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(open_files().count(wake_fifo), 0U);
}

// `muster env`, and people who debug a launch, use the launch record: it must contain exactly what
// the rank was given.
TEST_F(HostTest, LaunchRecordIsWhatTheRankReallyGot) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.path = "/nowhere:/usr/bin:/bin"; });
  v1::NodeLaunch launch = shell_launch(dir_.path(), "", 2);
  for (auto& rank : *launch.mutable_ranks()) {
    rank.clear_argv();
    for (const char* word : {"sleep", "1000"}) rank.add_argv(word);
  }
  (*launch.mutable_env())["HOME"] = "/of/the/job";
  (*launch.mutable_ranks(1)->mutable_env())["USER"] = "rank's own";
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.started; }));
  const auto record = rundir::read_launch(rundir::RunLayout(agent.run_dir()));
  ASSERT_TRUE(record && *record);
  const auto lines = [](const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
      all.emplace_back(text.c_str() + at);
    return all;
  };
  for (const auto& rank : (*record)->ranks()) {
    std::map<std::string, std::string> recorded;
    const auto put = [&](const std::string& variable) {
      recorded[variable.substr(0, variable.find('='))] = variable;
    };
    for (const std::string& variable : (*record)->env()) put(variable);
    for (const std::string& variable : rank.env()) put(variable);
    std::set<std::string> expected;
    for (const auto& [name, variable] : recorded) expected.insert(variable);
    const std::string proc = "/proc/" + std::to_string(agent.seen().pids.at(rank.rank()));
    // During an exec, when its pipe is already closed, the kernel shows neither arguments nor
    // variables.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (read_text(proc + "/environ").empty() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    const auto got = lines(read_text(proc + "/environ"));
    EXPECT_EQ(std::set<std::string>(got.begin(), got.end()), expected);
    EXPECT_EQ(got.size(), expected.size()) << "none twice";
    EXPECT_EQ(lines(read_text(proc + "/cmdline")),
              std::vector<std::string>(rank.argv().begin(), rank.argv().end()));
    EXPECT_EQ(rank.argv(0), "/usr/bin/sleep");
    EXPECT_EQ(std::filesystem::canonical(proc + "/exe"), std::filesystem::canonical(rank.argv(0)));
    EXPECT_EQ(std::filesystem::canonical(proc + "/cwd"), std::filesystem::canonical(rank.cwd()));
    EXPECT_TRUE(expected.contains("HOME=/of/the/job"));
    EXPECT_TRUE(expected.contains("PATH=/nowhere:/usr/bin:/bin"));
    EXPECT_EQ(expected.contains("USER=rank's own"), rank.rank() == 1);
    EXPECT_TRUE(expected.contains("LOGNAME=" + find_user("")->name));
  }
  agent.perform(SignalStop{.run = kRun});
  EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
}

TEST_F(HostTest, DeadWorkerIsSeenAtOnceAndItsRanksAreSwept) {
  HostIncarnation agent(dir_.path() / "state");
  // setsid: a process that left its session and its group must be found as well.
  agent.perform(StartRun{
      .run = kRun,
      .launch = shell_launch(dir_.path(), "trap '' TERM; setsid sleep 1000 & exec sleep 1000", 2)});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  ::kill(static_cast<pid_t>(agent.seen().worker_pid), SIGKILL);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_EQ(living(), 0U);
  EXPECT_EQ(agent.seen().swept_why, v1::SWEPT_WHY_WORKER_DIED);
}

TEST_F(HostTest, SweptByTheAgentIsRemembered) {
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "another boot"});
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  HostIncarnation agent(dir_.path() / "state");
  const RunSeen seen = agent.seen();
  EXPECT_EQ(seen.worker, WorkerState::Never);
  ASSERT_TRUE(seen.refused);
  EXPECT_EQ(seen.refused->first, v1::START_FAILURE_GONE);
  EXPECT_EQ(seen.refused->second, "another boot");
  EXPECT_TRUE(seen.swept);
}

TEST_F(HostTest, RefusalAfterTheWorkersClaimAdoptsInstead) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(
      agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Alive; }));
  agent.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "too late"});
  EXPECT_EQ(agent.seen().worker, WorkerState::Alive);
  EXPECT_FALSE(agent.seen().refused);
}

TEST_F(HostTest, ClaimedByTheAgentNeverStarts) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(RefuseRun{.run = kRun,
                          .why = v1::START_FAILURE_UNSPECIFIED,
                          .text = "asked to stop before it was started"});
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "echo no > ran")});
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
  // A late worker of an earlier incarnation loses the claim and ends.
  const std::string command = worker_binary().string() + " " + agent.run_dir().string();
  EXPECT_EQ(::system(command.c_str()), 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

TEST_F(HostTest, RestartBetweenLaunchRecordAndSpawnIsRefusedNotStartedTwice) {
  {
    HostIncarnation agent(dir_.path() / "state");
    const rundir::RunLayout layout(agent.run_dir());
    ASSERT_TRUE(rundir::make_run(layout));
    rundir::v1::Launch launch;
    launch.set_version(1);
    launch.set_boot_id(process::boot_id()->str());
    launch.add_ranks();
    ASSERT_TRUE(rundir::write_launch(layout, launch));
  }
  HostIncarnation agent(dir_.path() / "state");
  EXPECT_EQ(agent.seen().worker, WorkerState::None);
  EXPECT_TRUE(agent.seen().launch_sound);
  std::vector<Action> actions;
  agent.on_loop([&] {
    actions =
        reconcile({.instance = agent.state().identity().instance, .boot_id = *process::boot_id()},
                  nullptr, agent.host().seen(), true);
  });
  ASSERT_EQ(actions.size(), 1U);
  agent.perform(actions[0]);
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
}

TEST_F(HostTest, WorkerThatCannotBeStartedIsTheNodesTroubleWithASentence) {
  HostIncarnation agent(dir_.path() / "state", [](HostOptions& options) {
    options.worker = "/nonexistent/muster-worker";
  });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& run) { return run.refused.has_value(); }));
  const RunSeen seen = agent.seen();
  ASSERT_TRUE(seen.refused);
  EXPECT_EQ(seen.refused->first, v1::START_FAILURE_NODE);
  EXPECT_NE(seen.refused->second.find("'/nonexistent/muster-worker'"), std::string::npos)
      << seen.refused->second;
  EXPECT_EQ(seen.refused_step, "spawn");
}

TEST_F(HostTest, ACheckpointThatIsGoneIsNoFaultOfTheJob) {
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "touch ran");
  launch.mutable_resume()->set_dir((dir_.path() / "resume").string());
  launch.mutable_resume()->set_source((dir_.path() / "save").string());
  launch.mutable_resume()->set_step(7);
  launch.mutable_resume()->set_layout("megatron");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& run) { return run.refused.has_value(); }));
  const RunSeen seen = agent.seen();
  ASSERT_TRUE(seen.refused);
  EXPECT_EQ(seen.refused->first, v1::START_FAILURE_NODE);
  EXPECT_NE(seen.refused->second.find("resuming from step 7 in '" +
                                      (dir_.path() / "save").string() + "'"),
            std::string::npos)
      << seen.refused->second;
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

TEST_F(HostTest, AnOutputDirectoryThatNobodyCanMakeIsTheJobsFault) {
  HostIncarnation agent(dir_.path() / "state");
  dir_.write("file", "");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "true");
  launch.add_make_dirs((dir_.path() / "file/out").string());
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& run) { return run.refused.has_value(); }));
  EXPECT_NE(agent.seen().refused->second.find("file/out"), std::string::npos)
      << agent.seen().refused->second;
}

// The mark keeps it, so that a restarted agent reports the same fact.
TEST_F(HostTest, ARefusalNamesItsStepAlsoAfterARestart) {
  v1::NodeLaunch launch = shell_launch(dir_.path(), "true");
  const std::string file = dir_.write("file", "").string();
  launch.add_make_dirs(file);
  const auto check = [&](const RunSeen& seen) {
    EXPECT_EQ(seen.refused_step, "directories");
    const auto facts = facts_of(kRun, seen);
    ASSERT_FALSE(facts.empty());
    EXPECT_EQ(facts[0].start_failed().step(), "directories");
    EXPECT_EQ(facts[0].start_failed().text(),
              "making directory '" + file + "': a file of that name is there");
  };
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& run) { return run.refused.has_value(); }));
    check(agent.seen());
  }
  HostIncarnation agent(dir_.path() / "state");
  check(agent.seen());
}

// Regression: an agent without free descriptors concluded that the worker of a healthy run was
// dead, and swept the run.
TEST_F(HostTest, WithoutDescriptorsNoWorkerIsTakenForDead) {
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  }
  const rundir::AgentLayout state(dir_.path() / "state");
  RunView view(rundir::RunLayout(state.run(kRun.first, kRun.second)), *process::boot_id());
  {
    // Enough for the run directory, but not for a file in it.
    const process::FewDescriptors few(1);
    const auto read = view.refresh();
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("Too many open files"), std::string::npos)
        << read.error().message;
    EXPECT_NE(view.seen().worker, WorkerState::Dead);
    EXPECT_EQ(view.worker(), nullptr);
  }
  ASSERT_TRUE(view.refresh());
  EXPECT_EQ(view.seen().worker, WorkerState::Alive);
  EXPECT_FALSE(view.worker_unknown());
  ASSERT_NE(view.worker(), nullptr);
  EXPECT_TRUE(view.worker()->signal(SIGKILL));
}

// A sweep that could not begin must not count as a sweep in progress, or the run would never be
// swept.
TEST_F(HostTest, ASweepThatCannotBeginIsBegunAgain) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "another boot"});
  const SweepRun sweep{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED};
  agent.on_loop([&] {
    const process::FewDescriptors few(1);
    agent.host().perform(sweep);
  });
  EXPECT_FALSE(agent.seen().swept);
  ASSERT_EQ(agent.troubles().size(), 1U);
  EXPECT_NE(agent.troubles().front().find("sweeping run '"), std::string::npos)
      << agent.troubles().front();
  agent.perform(sweep);
  EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
}

// Regression: a process that hung in its exit, that belonged to another user, and that was older
// than the run, blocked every sweep on the node for ever.
TEST_F(HostTest, AStrangerWhoIsOlderHoldsNoSweepUp) {
  HostIncarnation agent(dir_.path() / "state");
  const process::Stranger stranger;
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  ::kill(static_cast<pid_t>(agent.seen().worker_pid), SIGKILL);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
  EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
}

TEST_F(HostTest, WorkerThatDiesBeforeItsClaimLeavesAnUnclaimedRun) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.worker = "/bin/true"; });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.worker == WorkerState::None && seen.launch_sound; }));
}

TEST_F(HostTest, ForgetRemovesTheDirectory) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  agent.perform(ForgetRun{.run = kRun});
  EXPECT_FALSE(agent.holds());
  EXPECT_FALSE(std::filesystem::exists(agent.run_dir()));
}

// Regression: short jobs were forgotten between their worker's last record and its end, and each
// left a zombie. Here a shell of the test keeps the worker from ending, at a gate.
TEST_F(HostTest, AWorkerThatIsForgottenBeforeItHasEndedIsReaped) {
  const std::filesystem::path gate = dir_.path() / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const io::UniqueFd gate_fd(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  const std::filesystem::path pid_file = dir_.path() / "pid";
  const std::string name(rundir::kProcessTagVariable);
  const auto script = dir_.write("worker", "#!/bin/sh\nexec env -u " + name + " sh -c 'echo $$ > " +
                                               pid_file.string() + "; " + name + "=$0 " +
                                               worker_binary().string() + " \"$@\"; read line < " +
                                               gate.string() + "' \"$" + name + "\" \"$@\"\n");
  ASSERT_EQ(::chmod(script.c_str(), 0700), 0);
  HostIncarnation agent(dir_.path() / "state",
                        [&](HostOptions& options) { options.worker = script; });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "true")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  const pid_t shell = std::stoi(read_text(pid_file));
  ASSERT_EQ(::kill(shell, 0), 0);
  agent.perform(ForgetRun{.run = kRun});
  EXPECT_FALSE(agent.holds());
  ASSERT_EQ(::write(gate_fd.get(), "\n", 1), 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (::kill(shell, 0) == 0 && std::chrono::steady_clock::now() < deadline) agent.on_loop([] {});
  EXPECT_EQ(::kill(shell, 0), -1) << "a zombie is left";
}

TEST_F(HostTest, HalfRemovedDirectoryOfACrashIsNotARun) {
  {
    HostIncarnation agent(dir_.path() / "state");
    std::filesystem::create_directories(agent.state().layout().runs() /
                                        (".gone-" + kRun.first.str() + ".1") / "logs");
  }
  {
    HostIncarnation agent(dir_.path() / "state");
  }  // after this, its cleanup has run
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path() / "state/runs"));
}

TEST_F(HostTest, MarksOfTheWatchSurvive) {
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exit 3", 2)});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
    agent.on_loop([&] {
      agent.host().note_first_step(kRun, 7);
      agent.host().note_first_step(kRun, 9);
      agent.host().note_rank_end(kRun, 0, "ValueError: x", true, v1::EVIDENCE_KIND_CAUSE, 40, 100);
      agent.host().note_rank_end(kRun, 1, "", false);
    });
  }
  HostIncarnation agent(dir_.path() / "state");
  const RunSeen seen = agent.seen();
  EXPECT_EQ(seen.first_step, 7);
  EXPECT_EQ(seen.exits.at(0).evidence, "ValueError: x");
  EXPECT_TRUE(seen.exits.at(0).success_seen);
  EXPECT_EQ(seen.exits.at(0).step, 40);
  EXPECT_EQ(seen.exits.at(0).total, 100);
  EXPECT_EQ(seen.exits.at(1).evidence, "");
  EXPECT_FALSE(seen.exits.at(1).step);
  const auto view = agent.read_run();
  EXPECT_TRUE(view->marked_end(1)) << "read to its end, and nothing was there";
  EXPECT_FALSE(view->marked_end(2));
}

// A restarted agent reports the same fact, and not another one.
TEST_F(HostTest, ASkewedClockIsMarkedOnceForARunThatLives) {
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.on_loop([&] { agent.host().note_clock_skew(std::chrono::seconds(75)); });  // no run
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.started; }));
    EXPECT_FALSE(agent.seen().clock_ahead);
    agent.on_loop([&] {
      agent.host().note_clock_skew(std::chrono::seconds(75));
      agent.host().note_clock_skew(std::chrono::seconds(90));
    });
    EXPECT_EQ(agent.seen().clock_ahead, std::chrono::seconds(75));
  }
  HostIncarnation agent(dir_.path() / "state");
  EXPECT_EQ(agent.seen().clock_ahead, std::chrono::seconds(75));
}

TEST_F(HostTest, UploadsThatHaveEndedAreRemembered) {
  const auto uploaded = [](std::optional<std::int64_t> step, bool seal, std::uint64_t files) {
    return RunSeen::Outputs{.files = files, .problem = "why", .step = step, .seal = seal};
  };
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exit 0")});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
    agent.on_loop([&] {
      agent.host().note_outputs(kRun, uploaded(100, false, 1));
      agent.host().note_outputs(kRun, uploaded(100, true, 2));
      agent.host().note_outputs(kRun, uploaded(200, false, 3));
      agent.host().note_outputs(kRun, uploaded(150, false, 4));
      agent.host().note_outputs(kRun, uploaded({}, false, 5));
      agent.host().note_outputs(kRun, uploaded({}, false, 6));
      RunSeen::Outputs logs = uploaded({}, false, 7);
      logs.logs = true;
      agent.host().note_outputs(kRun, logs);
    });
  }
  HostIncarnation agent(dir_.path() / "state");
  const RunSeen seen = agent.seen();
  ASSERT_TRUE(seen.checkpoint_sent && seen.checkpoint_sealed && seen.outputs);
  EXPECT_EQ(seen.checkpoint_sent->step, 200) << "the newest one";
  EXPECT_EQ(seen.checkpoint_sent->files, 3U);
  EXPECT_EQ(seen.checkpoint_sealed->step, 100);
  EXPECT_EQ(seen.outputs->files, 5U) << "once";
  EXPECT_EQ(seen.outputs->problem, "why");
  ASSERT_TRUE(seen.logs_end);
  EXPECT_EQ(seen.logs_end->files, 7U);
  std::vector<v1::OutputsUploaded> facts;
  for (const v1::Fact& fact : facts_of(kRun, seen))
    if (fact.has_outputs_uploaded()) facts.push_back(fact.outputs_uploaded());
  ASSERT_EQ(facts.size(), 4U);
  EXPECT_EQ(facts[0].step(), 200);
  EXPECT_FALSE(facts[0].seal());
  EXPECT_EQ(facts[1].step(), 100);
  EXPECT_TRUE(facts[1].seal());
  EXPECT_FALSE(facts[2].has_step());
  EXPECT_FALSE(facts[2].logs());
  EXPECT_TRUE(facts[3].logs());
}

// Regression: leases were rewritten only when they gained a tenth. An agent that was away for 28 of
// 30 minutes of grace found ranks that had been killed at minute 27.
TEST_F(HostTest, LeaseIsThereBeforeTheWorkerAndNeverShorterThanTheGrace) {
  HostIncarnation agent(dir_.path() / "state");
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.started; }));
  const rundir::RunLayout layout(agent.run_dir());
  const auto until = [&] {
    return *rundir::lease_end(**rundir::read_lease(layout), *process::boot_id());
  };
  const BootTime first = until();
  const BootTime now = system_clock().now().boot;
  const auto grace = std::chrono::seconds(60), step = std::chrono::seconds(6);
  EXPECT_LE(first, now + grace + step);
  const BootTime heard = first - grace - step;
  for (const auto later : {std::chrono::seconds(2), std::chrono::seconds(5)}) {
    agent.on_loop([&] { agent.host().renew_leases(heard + later); });
    EXPECT_EQ(until(), first) << "a tenth of the grace is not gained yet";
    EXPECT_GE(until(), heard + later + grace) << "and the whole grace is there all the same";
  }
  agent.on_loop([&] { agent.host().renew_leases(heard + step); });
  EXPECT_EQ(until(), heard + step + grace + step);
  agent.on_loop([&] { agent.host().renew_leases(heard); });
  EXPECT_EQ(until(), heard + step + grace + step) << "never shortened by an older heartbeat";
}

}  // namespace
}  // namespace muster::agent
