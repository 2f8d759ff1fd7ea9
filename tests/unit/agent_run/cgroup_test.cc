// Control groups, if this machine allows them; the choice between them and process tags,
// everywhere. Regression: the base was muster-<node>; two clusters with nodes of the same name
// shared it, and a killed agent left it.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/process/cgroup.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// Unique for this test process: tests of other builds may run in parallel.
InstanceId instance(const std::string& name) {
  return InstanceId(name + std::to_string(::getpid()));
}

std::optional<fs::path> writable_parent() {
  const auto own = process::own_cgroup();
  if (!own) return std::nullopt;
  const fs::path probe = *own / ("muster-probe-" + std::to_string(::getpid()));
  std::error_code error;
  if (!fs::create_directory(probe, error)) return std::nullopt;
  fs::remove(probe, error);
  return *own;
}

#define NEEDS_CGROUPS(parent)            \
  const auto parent = writable_parent(); \
  if (!parent) GTEST_SKIP() << "no cgroup v2 directory that this user may write to"

// For events without a notification.
bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class CgroupTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  static std::function<void(HostOptions&)> with(const fs::path& base,
                                                const ClusterId& cluster = kCluster) {
    return [base, cluster](HostOptions& options) {
      options.cgroup_base = base;
      options.cluster = cluster;
    };
  }
  TempDir dir_;
};

TEST_F(CgroupTest, NoneAndNonsense) {
  const auto none = choose_cgroup_base("none", kNode, instance("a"));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->base);
  EXPECT_FALSE(none->note.empty());
  const auto plain = choose_cgroup_base((dir_.path() / "x").string(), kNode, instance("a"));
  ASSERT_FALSE(plain) << "an ordinary directory is no control group";
  EXPECT_EQ(plain.error().code, ErrorCode::InvalidArgument);
  EXPECT_FALSE(choose_cgroup_base("relative", kNode, instance("a")));
}

TEST_F(CgroupTest, AutoAlwaysSaysWhatItDidAndLeavesNothingUntilThereIsARun) {
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_FALSE(choice->note.empty());
  if (choice->base) {
    EXPECT_FALSE(fs::exists(*choice->base)) << "an idle agent that is killed must leave nothing";
  }
}

// Regression: ending one run killed the ranks of another. This happened to two private clusters on
// one machine, both with a node n1 and a job of the same id. It also happened to one job with two
// nodes on one machine and one --cgroup directory.
TEST_F(CgroupTest, AgentsOfOneNodeNameDoNotShare) {
  NEEDS_CGROUPS(parent);
  for (const std::string& wanted :
       {std::string("auto"), (*parent / ("muster-test-" + std::to_string(::getpid()))).string()}) {
    const auto one = choose_cgroup_base(wanted, kNode, instance("one")),
               two = choose_cgroup_base(wanted, kNode, instance("two"));
    ASSERT_TRUE(one && two) << one.error().message;
    ASSERT_TRUE(one->base && two->base) << one->note;
    EXPECT_NE(*one->base, *two->base);
    {
      HostIncarnation first(dir_.path() / "one", with(*one->base)),
          second(dir_.path() / "two", with(*two->base, ClusterId("c-other")));
      for (HostIncarnation* agent : {&first, &second}) {
        agent->perform(
            StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
        ASSERT_TRUE(agent->wait_for(
            [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
      }
      const fs::path kept = *two->base / (kRun.first.str() + ".1");
      EXPECT_EQ(process::Cgroup::make(kept)->count(), 1U);
      ASSERT_TRUE(process::Cgroup::make(*one->base / (kRun.first.str() + ".1"))->kill());
      ASSERT_TRUE(first.wait_for([](const RunSeen& seen) { return seen.swept; }));
      EXPECT_EQ(process::Cgroup::make(kept)->count(), 1U) << "the other's rank lives";
      second.perform(SignalStop{.run = kRun});
      ASSERT_TRUE(second.wait_for([](const RunSeen& seen) { return seen.swept; }));
    }
    EXPECT_FALSE(fs::exists(*one->base));
    EXPECT_FALSE(fs::exists(*two->base));
    if (wanted != "auto") {
      EXPECT_EQ(::rmdir(wanted.c_str()), 0);
    }
    fs::remove_all(dir_.path() / "one");
    fs::remove_all(dir_.path() / "two");
  }
}

TEST_F(CgroupTest, SweepFindsWhatHasEmptiedItsEnvironment) {
  NEEDS_CGROUPS(parent);
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice && choice->base);
  {
    HostIncarnation agent(dir_.path() / "state", with(*choice->base));
    agent.perform(StartRun{
        .run = kRun,
        .launch = shell_launch(dir_.path(), "setsid env -i sleep 1000 & exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    ::kill(static_cast<pid_t>(agent.seen().worker_pid), SIGKILL);
    ASSERT_TRUE(
        agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
    EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  EXPECT_FALSE(fs::exists(*choice->base)) << "the run's own group is gone, and the base with it";
}

// kill -9 of an agent that is never restarted: its runs continue, end, and leave nothing.
TEST_F(CgroupTest, TheWorkerRemovesTheBaseOfAnAgentThatIsGone) {
  NEEDS_CGROUPS(parent);
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice && choice->base);
  pid_t worker = 0;
  {
    HostIncarnation agent(dir_.path() / "state", with(*choice->base));
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = static_cast<pid_t>(agent.seen().worker_pid);
  }
  EXPECT_TRUE(fs::exists(*choice->base));
  ::kill(worker, SIGTERM);
  ASSERT_EQ(::waitpid(worker, nullptr, 0), worker) << "the test's process was its agent";
  EXPECT_FALSE(fs::exists(*choice->base));
}

TEST_F(CgroupTest, AStartRemovesTheEmptyLeftoversOfItsOwnInstanceOnly) {
  NEEDS_CGROUPS(parent);
  const InstanceId own = instance("own");
  const auto choice = choose_cgroup_base("auto", kNode, own);
  ASSERT_TRUE(choice && choice->base);
  const fs::path stale = *choice->base / "0000000000abc.7",
                 renamed = *parent / ("muster-othername-" + own.str()),
                 foreign = *parent / ("muster-n1-" + instance("foreign").str());
  for (const fs::path& path :
       {stale / "made by a rank", renamed / "0000000000abc.1", foreign / "0000000000abc.1"})
    fs::create_directories(path);
  ASSERT_TRUE(choose_cgroup_base("auto", kNode, own));
  {
    const HostIncarnation agent(dir_.path() / "state", with(*choice->base));
  }
  EXPECT_FALSE(fs::exists(*choice->base));
  EXPECT_FALSE(fs::exists(renamed));
  EXPECT_TRUE(fs::exists(foreign / "0000000000abc.1")) << "somebody else's";
  EXPECT_TRUE(process::remove_run_group(foreign / "0000000000abc.1"));
  EXPECT_FALSE(fs::exists(foreign));
}

TEST_F(CgroupTest, AStartLeavesTheGroupOfALivingRunAlone) {
  NEEDS_CGROUPS(parent);
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice && choice->base);
  {
    HostIncarnation agent(dir_.path() / "state", with(*choice->base));
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  }
  ASSERT_TRUE(choose_cgroup_base("auto", kNode, instance("a")));
  HostIncarnation agent(dir_.path() / "state", with(*choice->base));
  EXPECT_EQ(process::Cgroup::make(*choice->base / (kRun.first.str() + ".1"))->count(), 1U);
  EXPECT_EQ(agent.seen().worker, WorkerState::Alive);
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_FALSE(fs::exists(*choice->base));
}

// The run's directory is gone; its group and processes are not. Regression: the sweep used only the
// process tag. A process that had removed the tag lived on, and so did the group.
TEST_F(CgroupTest, AnAgentPutBackFromBeforeARunSweepsItsGroup) {
  NEEDS_CGROUPS(parent);
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice && choice->base);
  pid_t worker = 0;
  {
    HostIncarnation agent(dir_.path() / "state", with(*choice->base));
    agent.perform(StartRun{
        .run = kRun,
        .launch = shell_launch(dir_.path(), "setsid env -i sleep 1000 & exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = static_cast<pid_t>(agent.seen().worker_pid);
    fs::remove_all(agent.run_dir());
  }
  HostIncarnation agent(dir_.path() / "state", with(*choice->base));
  EXPECT_FALSE(agent.holds());
  EXPECT_TRUE(fs::exists(*choice->base / (kRun.first.str() + ".1"))) << "somebody is in it";
  agent.perform(RefuseRun{.run = kRun,
                          .why = v1::START_FAILURE_UNSPECIFIED,
                          .text = "asked to stop before it was started"});
  agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
  EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  EXPECT_FALSE(fs::exists(*choice->base)) << "the group is empty and gone, and the base with it";
  EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
}

// Regression: the state directory was removed during a run, and the run's processes had removed
// their environment. The next instance scanned only its own groups, reported that nothing was left,
// and the devices were given out.
TEST_F(CgroupTest, ANewInstanceSweepsTheGroupOfTheOneBefore) {
  NEEDS_CGROUPS(parent);
  const fs::path state = dir_.path() / "state";
  const auto base_of = [&] {
    return choose_cgroup_base("auto", kNode, StateDir::open(state)->identity().instance);
  };
  const auto before = base_of();
  ASSERT_TRUE(before && before->base);
  pid_t worker = 0;
  {
    HostIncarnation agent(state, with(*before->base));
    agent.perform(
        StartRun{.run = kRun,
                 .launch = shell_launch(
                     dir_.path(), "setsid env -i sleep 1000 & echo $! > left; exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = static_cast<pid_t>(agent.seen().worker_pid);
    ASSERT_TRUE(eventually([&] {
      return process::Cgroup::make(*before->base / (kRun.first.str() + ".1"))->count() == 2 &&
             !read_text(dir_.path() / "left").empty();
    }));
  }
  const auto left =
      process::Pidfd::open(*process::identify(std::stoi(read_text(dir_.path() / "left"))));
  ASSERT_TRUE(left);
  ::kill(worker, SIGKILL);
  ASSERT_EQ(::waitpid(worker, nullptr, 0), worker);
  ASSERT_FALSE(left->exited());
  fs::remove_all(state);
  const auto after = base_of();
  ASSERT_TRUE(after && after->base);
  ASSERT_NE(*after->base, *before->base);
  {
    HostIncarnation agent(state, with(*after->base));
    // As the controller orders it.
    agent.perform(RefuseRun{.run = kRun,
                            .why = v1::START_FAILURE_UNSPECIFIED,
                            .text = "asked to stop before it was started"});
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
    EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
    EXPECT_TRUE(left->exited()) << "swept, and it lived";
  }
  EXPECT_FALSE(fs::exists(*before->base));
  EXPECT_FALSE(fs::exists(*after->base));
}

// Nobody orders a stop for what the controller does not know any more.
TEST_F(CgroupTest, ANewInstanceEndsWhatNobodyAsksFor) {
  NEEDS_CGROUPS(parent);
  const fs::path state = dir_.path() / "state";
  const auto base_of = [&] {
    return choose_cgroup_base("auto", kNode, StateDir::open(state)->identity().instance);
  };
  const auto before = base_of();
  ASSERT_TRUE(before && before->base);
  pid_t worker = 0;
  {
    HostIncarnation agent(state, with(*before->base));
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = static_cast<pid_t>(agent.seen().worker_pid);
  }
  // an empty group, left by a worker that was killed at its last step
  fs::create_directories(*before->base / "0000000000abc.7");
  fs::remove_all(state);
  const auto after = base_of();
  ASSERT_TRUE(after && after->base);
  {
    const HostIncarnation agent(state, with(*after->base));
    ASSERT_EQ(::waitpid(worker, nullptr, 0), worker) << "its rank was ended, and so it ended";
  }
  EXPECT_FALSE(fs::exists(*before->base));
}

// Many agents on one machine (`muster local up`), one of them away for a moment: no other agent may
// end its runs.
TEST_F(CgroupTest, AnotherStateDirectorysAgentMayComeBack) {
  NEEDS_CGROUPS(parent);
  const auto choice =
      choose_cgroup_base("auto", kNode, StateDir::open(dir_.path() / "one")->identity().instance);
  const auto other =
      choose_cgroup_base("auto", kNode, StateDir::open(dir_.path() / "two")->identity().instance);
  ASSERT_TRUE(choice && choice->base && other && other->base);
  {
    HostIncarnation agent(dir_.path() / "one", with(*choice->base));
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
  }
  {
    HostIncarnation agent(dir_.path() / "two", with(*other->base, ClusterId("c-other")));
    agent.perform(RefuseRun{.run = kRun,
                            .why = v1::START_FAILURE_UNSPECIFIED,
                            .text = "asked to stop before it was started"});
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
    EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  HostIncarnation agent(dir_.path() / "one", with(*choice->base));
  EXPECT_EQ(agent.seen().worker, WorkerState::Alive);
  EXPECT_EQ(process::Cgroup::make(*choice->base / (kRun.first.str() + ".1"))->count(), 1U);
  agent.perform(SignalStop{.run = kRun});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
}

// The state directories of two incarnations of a node, and what the first left in its group: a rank
// whose agent is gone.
class LeftBehindTest : public CgroupTest {
 protected:
  void leave_one() {
    const auto choice =
        choose_cgroup_base("auto", kNode, StateDir::open(one_)->identity().instance);
    ASSERT_TRUE(choice && choice->base);
    base_ = *choice->base;
    HostIncarnation agent(one_, with(base_));
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker_ = static_cast<pid_t>(agent.seen().worker_pid);
  }
  // An agent of this node starts with the other directory, and is ordered to sweep the run.
  void start_two() {
    const auto choice =
        choose_cgroup_base("auto", kNode, StateDir::open(two_)->identity().instance);
    ASSERT_TRUE(choice && choice->base);
    HostIncarnation agent(two_, with(*choice->base, ClusterId("c-other")));
    agent.perform(RefuseRun{.run = kRun,
                            .why = v1::START_FAILURE_UNSPECIFIED,
                            .text = "asked to stop before it was started"});
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
    EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  }
  void expect_ended() {
    EXPECT_FALSE(fs::exists(base_));
    ::kill(worker_, SIGKILL);  // It is not in the group, but may have ended with its rank.
    EXPECT_EQ(::waitpid(worker_, nullptr, 0), worker_);
  }
  void expect_alive_and_end() {
    EXPECT_EQ(process::Cgroup::make(group())->count(), 1U);
    ::kill(worker_, SIGKILL);
    EXPECT_EQ(::waitpid(worker_, nullptr, 0), worker_);
    EXPECT_TRUE(process::discard_run_group(group(), 10'000));
    EXPECT_FALSE(fs::exists(base_));
  }
  [[nodiscard]] fs::path group() const { return base_ / (kRun.first.str() + ".1"); }

  const fs::path one_ = dir_.path() / "one", two_ = dir_.path() / "two";
  fs::path base_;
  pid_t worker_ = 0;
};

// Regression: the node was restarted with another --state-dir. It reported that nothing was left,
// and the devices were given out.
TEST_F(LeftBehindTest, AnotherStateDirectorysAgentEndsWhatARemovedOneLeft) {
  NEEDS_CGROUPS(parent);
  ASSERT_NO_FATAL_FAILURE(leave_one());
  fs::remove_all(one_);
  start_two();
  expect_ended();
}

// As after a replacement of its disk: the instance that uses the directory now does not have those
// runs.
TEST_F(LeftBehindTest, ADirectoryThatIsAnotherInstancesNowKeepsNothing) {
  NEEDS_CGROUPS(parent);
  ASSERT_NO_FATAL_FAILURE(leave_one());
  fs::remove_all(one_);
  const auto now = StateDir::open(one_);  // and keeps its lock
  ASSERT_TRUE(now);
  start_two();
  expect_ended();
}

TEST_F(LeftBehindTest, ADirectoryThatCannotBeReadMayStillBeItsAgents) {
  NEEDS_CGROUPS(parent);
  ASSERT_NO_FATAL_FAILURE(leave_one());
  dir_.write("one/identity", "damaged");
  start_two();
  expect_alive_and_end();
}

// Where this agent sees nothing, another agent may see its directory.
TEST_F(LeftBehindTest, WhatIsInAnotherMountNamespaceIsNotKnown) {
  NEEDS_CGROUPS(parent);
  ASSERT_NO_FATAL_FAILURE(leave_one());
  struct stat mounts{};
  ASSERT_EQ(::stat("/proc/self/ns/mnt", &mounts), 0);
  std::string owner = process::owner_of(base_).value_or("");
  const std::string word = " " + std::to_string(mounts.st_ino) + " ";
  const auto at = owner.find(word);
  ASSERT_NE(at, std::string::npos) << owner;
  process::note_owner(base_, owner.replace(at, word.size(), " 1 "));
  fs::remove_all(one_);
  start_two();
  expect_alive_and_end();
}

// What a client does when it removes a whole private cluster after its daemons were killed.
TEST_F(CgroupTest, ARunsGroupCanBeDiscardedWithAllThatIsInIt) {
  NEEDS_CGROUPS(parent);
  const auto choice = choose_cgroup_base("auto", kNode, instance("a"));
  ASSERT_TRUE(choice && choice->base);
  const fs::path group = *choice->base / (kRun.first.str() + ".1");
  pid_t worker = 0;
  {
    HostIncarnation agent(dir_.path() / "state", with(*choice->base));
    agent.perform(StartRun{
        .run = kRun,
        .launch =
            shell_launch(dir_.path(), "setsid env -i sleep 1000 & touch ready; exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.started && seen.worker == WorkerState::Alive; }));
    worker = static_cast<pid_t>(agent.seen().worker_pid);
  }
  ::kill(worker, SIGKILL);
  ASSERT_EQ(::waitpid(worker, nullptr, 0), worker);
  EXPECT_TRUE(fs::exists(group));
  const auto discarded = process::discard_run_group(group, 10'000);
  EXPECT_TRUE(discarded) << discarded.error().message;
  EXPECT_FALSE(fs::exists(*choice->base));
  EXPECT_TRUE(process::discard_run_group(group, 10'000)) << "nothing there is no error";
}

}  // namespace
}  // namespace muster::agent
