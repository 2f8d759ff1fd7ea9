// Auxiliary processes and setup through the whole host: order, record, worker, and what is observed
// and reported.
#include <algorithm>

#include "agent/logs/auxiliary_log.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

class Auxiliaries : public ::testing::Test {
 protected:
  v1::NodeLaunch with_auxiliary(const std::string& ranks, const std::string& auxiliary) {
    v1::NodeLaunch launch = shell_launch(dir_.path(), ranks);
    v1::AuxiliaryProcess& added = *launch.add_auxiliaries();
    added.set_name("scheduler");
    for (const char* word : {"sh", "-c"}) added.add_argv(word);
    added.add_argv(auxiliary);
    added.set_cwd(dir_.path().string());
    (*added.mutable_env())["MS_ROLE"] = "MS_SCHED";
    return launch;
  }
  static bool over(const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }
  static const v1::AuxiliaryExited* reported_exit(const std::vector<v1::Fact>& facts) {
    const auto found = std::ranges::find_if(facts, &v1::Fact::has_auxiliary_exited);
    return found == facts.end() ? nullptr : &found->auxiliary_exited();
  }

  TempDir dir_;
};

TEST_F(Auxiliaries, ABadEndIsReportedWithWhatItsLogSays) {
  std::vector<v1::Fact> facts;
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{
        .run = kRun,
        .launch =
            with_auxiliary("exec sleep 60",
                           "echo 'RuntimeError: Bind to 10.0.0.1:8118 failed'; echo end; exit 3")});
    ASSERT_TRUE(agent.wait_for(over));
    facts = facts_of(kRun, agent.seen());
    EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
  }
  const v1::AuxiliaryExited* exited = reported_exit(facts);
  ASSERT_NE(exited, nullptr);
  EXPECT_EQ(exited->name(), "scheduler");
  EXPECT_EQ(exited->code(), 3);
  EXPECT_EQ(exited->evidence(), "RuntimeError: Bind to 10.0.0.1:8118 failed");
  const auto rank = std::ranges::find_if(facts, &v1::Fact::has_exited);
  ASSERT_NE(rank, facts.end());
  EXPECT_TRUE(rank->exited().stop_requested()) << "its end is not the cause";
  EXPECT_LT(std::ranges::find_if(facts, &v1::Fact::has_auxiliary_exited), rank);

  // The log is gone: the mark contains the line.
  std::filesystem::remove(
      rundir::RunLayout(rundir::AgentLayout(dir_.path() / "state").run(kRun.first, kRun.second))
          .auxiliary_log("scheduler"));
  HostIncarnation agent(dir_.path() / "state");
  const auto again = facts_of(kRun, agent.seen());
  ASSERT_EQ(again.size(), facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i)
    EXPECT_EQ(again[i].SerializeAsString(), facts[i].SerializeAsString());
}

// What an earlier incarnation has read in the log counts, whatever the log says now.
TEST_F(Auxiliaries, TheMarkOfItsEvidenceIsRead) {
  const rundir::RunLayout layout(
      rundir::AgentLayout(dir_.path() / "state").run(kRun.first, kRun.second));
  {
    HostIncarnation agent(dir_.path() / "state");
    agent.perform(StartRun{
        .run = kRun,
        .launch = with_auxiliary("exec sleep 60", "echo 'RuntimeError: of the log'; exit 3")});
    ASSERT_TRUE(agent.wait_for(over));
  }
  std::filesystem::remove(layout.mark());
  {
    auto marks = rundir::MarkWriter::open(layout.mark());
    ASSERT_TRUE(marks);
    rundir::v1::Mark mark;
    mark.mutable_evidence()->set_auxiliary("scheduler");
    mark.mutable_evidence()->set_line("RuntimeError: of the mark");
    ASSERT_TRUE(marks->append({mark}));
  }
  HostIncarnation agent(dir_.path() / "state");
  const auto facts = facts_of(kRun, agent.seen());
  const v1::AuxiliaryExited* exited = reported_exit(facts);
  ASSERT_NE(exited, nullptr);
  EXPECT_EQ(exited->evidence(), "RuntimeError: of the mark");
}

// What the watch must follow, also after a restart of the agent.
TEST_F(Auxiliaries, TheOrderKeepsTheNamesOfTheLogsAlone) {
  {
    HostIncarnation agent(dir_.path() / "state");
    v1::NodeLaunch launch = with_auxiliary("true", "true");
    launch.mutable_setup()->add_commands("true");
    agent.perform(StartRun{.run = kRun, .launch = std::move(launch)});
    ASSERT_TRUE(agent.wait_for(over));
  }
  HostIncarnation agent(dir_.path() / "state");
  const auto view = agent.read_run();
  ASSERT_TRUE(view->order_known());
  const v1::NodeLaunch& order = view->order();
  EXPECT_EQ(auxiliary_logs(order), (std::vector<std::string>{"scheduler", "setup"}));
  EXPECT_EQ(order.auxiliaries(0).argv_size() + static_cast<int>(order.auxiliaries(0).env().size()),
            0);
}

TEST_F(Auxiliaries, AGoodEndAndAStopAreNoFacts) {
  {
    HostIncarnation agent(dir_.path() / "good");
    agent.perform(
        StartRun{.run = kRun, .launch = with_auxiliary("true", "echo $MS_ROLE $RANK; exit 0")});
    ASSERT_TRUE(agent.wait_for(over));
    EXPECT_EQ(reported_exit(facts_of(kRun, agent.seen())), nullptr);
    ASSERT_EQ(agent.seen().auxiliary_exits.size(), 1U);
    EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).auxiliary_log("scheduler")),
              "MS_SCHED\n")
        << "the ranks' variables are not its own";
    EXPECT_EQ(agent.seen().swept_why, v1::SWEPT_WHY_ENDED);
  }
  HostIncarnation agent(dir_.path() / "stopped");
  agent.perform(StartRun{.run = kRun, .launch = with_auxiliary("exec sleep 60", "exec sleep 60")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.started; }));
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(over));
  EXPECT_EQ(reported_exit(facts_of(kRun, agent.seen())), nullptr);
}

TEST_F(Auxiliaries, NamesThatAreNoNamesAreRefused) {
  for (const std::string& name :
       {std::string(), std::string("../x"), std::string("a b"), std::string(65, 'x')}) {
    const TempDir dir;
    HostIncarnation agent(dir.path() / "state");
    v1::NodeLaunch launch = with_auxiliary("true", "true");
    launch.mutable_auxiliaries(0)->set_name(name);
    agent.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
    EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_LAUNCH);
    EXPECT_EQ(agent.seen().refused->second,
              "starting auxiliary process '" + name +
                  "': its name may have 1 to 64 letters, digits, '-' and '_'");
  }
}

TEST_F(Auxiliaries, AProgramThatIsNotThereIsRefusedByName) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.path = "/usr/bin:/bin"; });
  v1::NodeLaunch launch = with_auxiliary("true", "true");
  launch.mutable_auxiliaries(0)->set_argv(0, "no-such-program");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
  EXPECT_EQ(agent.seen().refused->second,
            "starting auxiliary process 'scheduler': executing 'no-such-program': there is no "
            "'no-such-program' on PATH '/usr/bin:/bin'");
}

class SetupOfARun : public Auxiliaries {};

TEST_F(SetupOfARun, TheOrderIsOverWhatItLeftAndTheBaseBelow) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.path = "/usr/bin:/bin:/agents"; });
  v1::NodeLaunch launch = with_auxiliary(
      "printf '%s\\n' \"$PATH\" \"$A\" \"$B\" \"$LANG\" \"$PYTHONUNBUFFERED\"", "echo $A; exit 0");
  (*launch.mutable_env())["B"] = "order";
  launch.mutable_setup()->set_cwd(dir_.path().string());
  for (const char* command :
       {"a=(setup)", "export A=${a[0]} B=setup LANG=de_DE", "export PATH=/venv:$PATH"})
    launch.mutable_setup()->add_commands(command);
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for(over));
  EXPECT_FALSE(agent.seen().start_failed) << *agent.seen().start_failed;
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(0)),
            "/venv:/usr/bin:/bin:/agents\nsetup\norder\nde_DE\n1\n");
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).auxiliary_log("scheduler")), "setup\n");
}

TEST_F(SetupOfARun, MayProvideTheScriptAndTheDirectoryThatRanksNeed) {
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path() / "clone", "", 1);
  launch.mutable_ranks(0)->clear_argv();
  for (const char* word : {"sh", "train.sh"}) launch.mutable_ranks(0)->add_argv(word);
  launch.mutable_setup()->set_cwd(dir_.path().string());
  launch.mutable_setup()->add_commands("mkdir clone");
  launch.mutable_setup()->add_commands("echo 'echo trained' > clone/train.sh");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for(over));
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(0)), "trained\n");
}

TEST_F(SetupOfARun, ABadEndIsAFailureOfTheLaunch) {
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "true");
  launch.mutable_setup()->add_commands("echo no licence >&2; exit 4");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for(over));
  const auto facts = facts_of(kRun, agent.seen());
  const auto failed = std::ranges::find_if(facts, &v1::Fact::has_start_failed);
  ASSERT_NE(failed, facts.end());
  EXPECT_EQ(failed->start_failed().why(), v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(failed->start_failed().text(),
            "running runtime.setup: 'exit 4' ended with status 4: no licence");
  EXPECT_FALSE(agent.seen().setting_up);
}

TEST_F(SetupOfARun, IsSeenWhileItRunsAndEndsWithAStop) {
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = shell_launch(dir_.path(), "true");
  launch.mutable_setup()->add_commands("sleep 60");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.setting_up; }));
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(over));
  EXPECT_FALSE(agent.seen().setting_up);
  EXPECT_EQ(agent.seen().swept_why, v1::SWEPT_WHY_STOPPED);
  EXPECT_TRUE(agent.seen().exits.empty());
}

// The user has no access to the run directory: script and environment are passed to it as open
// descriptors.
TEST_F(SetupOfARun, OfAnotherUser) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root starts processes as another user; this is user " << ::geteuid();
  std::filesystem::permissions(dir_.path(), static_cast<std::filesystem::perms>(0755));
  HostIncarnation agent(dir_.path() / "state");
  v1::NodeLaunch launch = with_auxiliary("echo $WHO", "id -un; exit 0");
  launch.set_user("nobody");
  launch.mutable_setup()->set_cwd(dir_.path().string());
  launch.mutable_setup()->add_commands("export WHO=$(id -un)");
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for(over));
  EXPECT_FALSE(agent.seen().start_failed) << *agent.seen().start_failed;
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(0)), "nobody\n");
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).auxiliary_log("scheduler")), "nobody\n");
}

// Regression: a power cut removed the launch record, and the controller already had the exits. It
// waited for logs that the agent could not name, and the job was never archived.
TEST(LostRecord, LogsOfTheRanksThatLeftATraceAreStillNamed) {
  for (const bool zeros : {false, true}) {
    const TempDir dir;
    const rundir::RunLayout layout(
        rundir::AgentLayout(dir.path() / "state").run(kRun.first, kRun.second));
    std::filesystem::create_directories(layout.root().parent_path());
    ASSERT_TRUE(rundir::make_run(layout));
    if (zeros) std::ofstream(layout.launch()) << std::string(4096, '\0');
    rundir::v1::Claim claim;
    claim.set_pid(4'000);
    claim.set_start_time(1);
    claim.set_boot_id("another-boot");
    ASSERT_TRUE(rundir::write_claim(layout, claim));
    auto events = rundir::EventWriter::open(layout.events());
    ASSERT_TRUE(events);
    rundir::v1::Event exited =
        rundir::stamped_event({.now = system_clock().now(), .boot = BootId("another-boot")});
    exited.mutable_exited()->set_rank(6);
    ASSERT_TRUE(events->append(exited));
    for (const char* name : {"rank-4.log", "rank-7.log", "rank-x.log", "worker.log", "setup.log",
                             "auxiliary-scheduler.log", "auxiliary-.log", "setup.cursor"})
      std::ofstream(layout.logs() / name) << "line\n";

    HostIncarnation agent(dir.path() / "state");
    const Self self{.instance = agent.state().identity().instance, .boot_id = *process::boot_id()};
    EXPECT_FALSE(agent.read_run()->order_known()) << "not before it is over";
    agent.on_loop([&] {
      for (const Action& action : reconcile(self, nullptr, agent.host().seen(), true))
        agent.host().perform(action);
    });
    EXPECT_EQ(agent.seen().swept_why, v1::SWEPT_WHY_REBOOTED);
    EXPECT_EQ(agent.seen().ranks, (std::vector<std::uint32_t>{4, 5, 6, 7}))
        << "and those between them";
    const auto view = agent.read_run();
    ASSERT_TRUE(view->order_known());
    EXPECT_EQ(view->order().watching().grammar(), "none");
    EXPECT_EQ(auxiliary_logs(view->order()), (std::vector<std::string>{"scheduler", "setup"}));
    EXPECT_EQ(facts_of(kRun, agent.seen()).size(), 5U)
        << "one exit, three that nobody saw, the sweep";
  }
}

// Anybody may create files with such names: the highest number, and two ranks that cannot be on one
// node.
TEST(LostRecord, NamesOfLogsHaveBounds) {
  for (const auto& [names, ranks] :
       {std::pair(std::vector<std::string>{"rank-4294967295.log"},
                  std::vector<std::uint32_t>{4'294'967'295}),
        std::pair(std::vector<std::string>{"rank-4294967295.log", "rank-0.log"},
                  std::vector<std::uint32_t>{})}) {
    const TempDir dir;
    const rundir::RunLayout layout(
        rundir::AgentLayout(dir.path() / "state").run(kRun.first, kRun.second));
    std::filesystem::create_directories(layout.root().parent_path());
    ASSERT_TRUE(rundir::make_run(layout));
    rundir::v1::Claim claim;
    claim.set_pid(4'000);
    claim.set_boot_id("another-boot");
    ASSERT_TRUE(rundir::write_claim(layout, claim));
    for (const std::string& name : names) std::ofstream(layout.logs() / name) << "";
    HostIncarnation agent(dir.path() / "state");
    agent.perform(MarkSwept{.run = kRun, .why = v1::SWEPT_WHY_REBOOTED});
    EXPECT_EQ(agent.seen().ranks, ranks);
  }
}

TEST(LostRecord, WithoutATraceThereIsNothingToName) {
  const TempDir dir;
  HostIncarnation agent(dir.path() / "state");
  agent.perform(RefuseRun{.run = kRun, .why = v1::START_FAILURE_GONE, .text = "gone"});
  agent.on_loop([&] {
    for (const Action& action :
         reconcile({.instance = agent.state().identity().instance, .boot_id = *process::boot_id()},
                   nullptr, agent.host().seen(), false))
      agent.host().perform(action);
  });
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_FALSE(agent.read_run()->order_known());
  EXPECT_TRUE(agent.seen().ranks.empty());
}

}  // namespace
}  // namespace muster::agent
