// A rank that is a script (launch.per: node): what it leaves running belongs to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "common/io/file.h"
#include "common/process/spawn.h"
#include "tests/unit/worker/run_under_test.h"
#include "worker/children.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class Script : public testing::Test {
 protected:
  Script() { test_.launch.set_scripts(true); }
  void start(const std::string& line) {
    test_.shell(line);
    test_.start();
  }
  void fifo(const std::string& name) const {
    ASSERT_EQ(::mkfifo((test_.dir / name).c_str(), 0600), 0);
  }
  void open_fifo(const std::string& name) const { std::ofstream(test_.dir / name) << "go\n"; }
  [[nodiscard]] const rundir::v1::Exited* ended() {
    events_ = test_.events();
    return exit_of(events_, 0);
  }
  // What it has started then belongs to the worker.
  [[nodiscard]] bool script_gone() const {
    if (!test_.wait_for(Event::kStarted)) return false;
    const auto pidfd = process::Pidfd::open_child(pid_of(test_.events(), 0));
    pollfd wait{.fd = pidfd ? pidfd->fd() : -1, .events = POLLIN, .revents = 0};
    return !pidfd || ::poll(&wait, 1, kPatienceMs) == 1;
  }
  RunUnderTest test_;
  RunUnderTest::Events events_;
};

// The tutorials' loop: every rank in the background, its log elsewhere, and the script ends.
TEST_F(Script, EndsWithItsLastDescendant) {
  for (int i = 0; i < 3; ++i) fifo("gate" + std::to_string(i));
  start("for i in 0 1 2; do (read x < gate$i; : > done$i) > log$i 2>&1 & done; : > away; exit 0");
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "away"));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  EXPECT_EQ(ended(), nullptr);
  for (int i = 0; i < 3; ++i) open_fifo("gate" + std::to_string(i));
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 0);
  EXPECT_EQ(kinds(events_), "RSEW");
}

TEST_F(Script, ADescendantsBadEndIsItsOwn) {
  fifo("gate");
  start("RANK_ID=3 sh -c 'read x < gate; exit 7' & exit 0");
  ASSERT_TRUE(script_gone());
  open_fifo("gate");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 7);
  EXPECT_THAT(test_.log(0), HasSubstr("which the script had left running, ended with status 7"));
}

TEST_F(Script, ADescendantThatIsKilledIsReportedAsThat) {
  start("sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' & exit 0");
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "pid"));
  ASSERT_TRUE(script_gone());
  pid_t pid = 0;
  ASSERT_TRUE(std::ifstream(test_.dir / "pid") >> pid);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->signal(), SIGKILL);
}

TEST(Descendant, IsNamedByItsEnvironment) {
  const auto named = [](const std::vector<std::string>& environment) {
    const auto pid = process::spawn(
        {.path = "/bin/sleep", .argv = {"sleep", "1000"}, .env = environment, .cwd = {}});
    EXPECT_TRUE(pid);
    // Waits until the new program's memory exists: a spawn returns a moment before that.
    const auto command = "/proc/" + std::to_string(*pid) + "/cmdline";
    for (auto text = io::read_file(command, 4096); text && text->empty();
         text = io::read_file(command, 4096)) {
    }
    std::string name = rank_of_process(*pid);
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return name;
  };
  EXPECT_EQ(named({"RANK_ID=12", "RANK=3"}), "rank 12");
  EXPECT_EQ(named({"A=1", "RANK=3"}), "rank 3");
  EXPECT_EQ(named({"MY_RANK=3", "RANK=x", "RANK_ID="}), "");
  EXPECT_EQ(rank_of_process(0), "");
}

// A daemon of the script failed hours ago, and nothing waited for it; the script continued and
// ended with success.
TEST_F(Script, AnOrphansEndBeforeTheScriptsOwnIsNobodysBusiness) {
  start(
      "(sh -c 'echo $$ > pid; exit 1' &) ; until [ -s pid ]; do sleep 0.01; done; while kill -0 "
      "$(cat pid) 2> no; do sleep 0.01; done; exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 0);
  EXPECT_EQ(ended()->signal(), 0);
}

// What a launcher inside reports about itself is sent on to the agent: where it would have saved,
// where its ranks' logs are, and which of them ended the script.
TEST_F(Script, WhatALaunchInsideSaysIsReported) {
  const std::string report = test_.run.shim_report().string();
  start(
      "printf 'begin 77 1\\nsaves 4 2 alone /data/ckpt\\nlog 4 /out/rank_4.log\\nlog 5 "
      "/out/rank_5.log\\nend 77 3 0 rank 5\\n' > " +
      report + "; exit 3");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 3);
  EXPECT_EQ(ended()->training_rank(), 5U);
  const Event* launched = first(events_, Event::kScriptLaunched);
  ASSERT_NE(launched, nullptr);
  EXPECT_EQ(launched->script_launched().save(), "/data/ckpt");
  EXPECT_TRUE(launched->script_launched().weights_alone());
  EXPECT_EQ(launched->script_launched().first_rank(), 4U);
  EXPECT_EQ(std::ranges::count(events_, Event::kScriptRankSeen, &Event::what_case), 2);
  EXPECT_EQ(first(events_, Event::kScriptRankSeen)->script_rank_seen().log(), "/out/rank_4.log");
  EXPECT_THAT(test_.log(0), HasSubstr("muster: the script ended with status 3, and rank 5 of the "
                                      "launcher inside ended with status 3"));
}

// monitor.sh & ... train ... kill $MONITOR
TEST_F(Script, AMonitorThatTheScriptKillsLastIsNoFailure) {
  for (const char* number : {"TERM", "KILL"}) {
    RunUnderTest test;
    test.launch.set_scripts(true);
    test.shell(
        "unset RANK; sh -c ': > up; exec sleep 1000' & M=$!; until [ -e up ]; do sleep 0.01; done; "
        "kill -" +
        std::string(number) + " $M; exit 0");
    test.start();
    EXPECT_EQ(test.wait_worker(), 0);
    const auto events = test.events();
    ASSERT_NE(exit_of(events, 0), nullptr);
    EXPECT_EQ(exit_of(events, 0)->code(), 0) << number;
  }
}

TEST_F(Script, ABadEndOfItsOwnIsTheEndOfAll) {
  start("sleep 1000 & exit 5");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 5);
  EXPECT_EQ(test_.carriers(), 0U);
}

TEST_F(Script, AStopGivesDescendantsTheirGrace) {
  fifo("gate");
  start("(trap ': > told; exit 0' TERM; : > ready; read x < gate) & exit 0");
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_TRUE(fs::exists(test_.dir / "told"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->stop_requested());
}

// bash dies of the SIGTERM at once; the rank that it waited for first saves its state.
TEST_F(Script, AStopWaitsForWhatTheScriptWaitedFor) {
  start("sh -c 'trap \": > saved; exit 0\" TERM; : > ready; while :; do sleep 0.05; done'; exit 0");
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_TRUE(fs::exists(test_.dir / "saved"));
}

TEST_F(Script, WhoIgnoresTheStopIsKilled) {
  test_.launch.set_stop_grace_ms(200);
  start("(trap '' TERM; : > ready; exec sleep 1000) & exit 0");
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSQEW");
  EXPECT_EQ(test_.carriers(), 0U);
}

// `torchrun ... | tee log`: the script's status is tee's.
TEST_F(Script, TheLaunchersReportCountsForAScriptThatEndsWell) {
  start("echo 'begin 7' > job.1/launches; echo 'end 7 -1 9 rank 5' >> job.1/launches; exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->signal(), SIGKILL);
  EXPECT_THAT(test_.log(0), HasSubstr("the script ended with status 0, and rank 5 of the launcher "
                                      "inside was ended by signal 9"));
}

// `torchrun ... &` and `exit 3`: the worker itself kills the launcher with the script's group,
// before it can report anything.
TEST_F(Script, ALauncherThatWasKilledWithTheScriptIsNotItsReason) {
  start("echo 'begin 7 1' > job.1/launches; exit 3");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->code(), 3);
  EXPECT_EQ(test_.log(0), "");
}

TEST_F(Script, ALauncherThatWasKilledIsReportedAsThat) {
  start("echo 'begin 7 1' > job.1/launches; exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->signal(), SIGKILL);
  EXPECT_EQ(test_.log(0),
            "muster: the script ended with status 0, and the launcher inside was killed\n");
}

// A rank that its launcher puts into a session of its own (as torchrun does), or the shell into a
// group of its own (set -m), saves its state, too.
TEST_F(Script, AStopReachesOtherSessionsAndGroups) {
  const std::string rank =
      "sh -c 'trap \": > saved$1; exit 0\" TERM; : > ready$1; while :; do sleep 0.05; done' rank ";
  start("set -m; " + rank + "1 & setsid -f " + rank + "2; setsid -w " + rank + "3 & wait; exit 0");
  for (const char* ready : {"ready1", "ready2", "ready3"})
    ASSERT_TRUE(test_.wait_for_file(test_.dir / ready));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  for (const char* saved : {"saved1", "saved2", "saved3"})
    EXPECT_TRUE(fs::exists(test_.dir / saved)) << saved;
}

// For `torchrun ... &`, bash's $! is the subshell in which the function runs. The function is that
// of agent/launch/shim_dir.cc.
TEST_F(Script, KillingALaunchInTheBackgroundReachesItsRanks) {
  fs::create_directory(test_.dir / "shim");
  fs::create_symlink(RunUnderTest::program("muster-worker"), test_.dir / "shim/torchrun");
  test_.launch.set_shim_dir((test_.dir / "shim").string());
  for (const std::string& variable :
       {"MUSTER_SHIM_DIR=" + (test_.dir / "shim").string(),
        "MUSTER_SHIM_LOGS=" + test_.dir.string(),
        "MUSTER_SHIM_REPORT=" + test_.run.shim_report().string(),
        std::string("MUSTER_SHIM_WORLD_SIZE=1"), std::string("MUSTER_SHIM_FIRST_RANK=0"),
        std::string("MUSTER_SHIM_GRACE_MS=10000"), std::string("MUSTER_NODES=1"),
        std::string("MUSTER_NODE_RANK=0"), std::string("MUSTER_DEVICES=0"),
        std::string("BASH_FUNC_torchrun%%=() {  [ \"$BASHPID\" = \"$$\" ] || local -x "
                    "MUSTER_SHIM_PARENT=\"$BASHPID\"\n \"$MUSTER_SHIM_DIR/torchrun\" \"$@\"\n}")})
    test_.launch.add_env(variable);
  std::ofstream(test_.dir / "rank.sh")
      << "trap ': > told; exit 0' TERM; : > up; while :; do sleep 0.05; done\n";
  std::ofstream(test_.dir / "run.sh") << "torchrun --no_python bash rank.sh & PID=$!\nuntil [ -e "
                                         "up ]; do sleep 0.05; done\nkill $PID\n"
                                         "until [ -e told ]; do sleep 0.05; done\nwait\nexit 4\n";
  start("exec bash run.sh");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_TRUE(fs::exists(test_.dir / "told"));
  ASSERT_NE(ended(), nullptr);
}

TEST_F(Script, HasTheShimFirstOnItsPath) {
  test_.launch.set_shim_dir((test_.dir / "shim").string());
  start("echo $PATH");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_THAT(test_.log(0), StartsWith((test_.dir / "shim").string() + ":/usr/bin:/bin\n"));
  EXPECT_THAT(test_.log(0), HasSubstr("the script called no launcher that muster answers"))
      << "an environment may hide them";
}

TEST_F(Script, WhoCalledALauncherGetsNoOutput) {
  test_.launch.set_shim_dir((test_.dir / "shim").string());
  start("printf 'begin 7 1\\nend 7 0 0 \\n' > job.1/launches; exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(test_.log(0), "");
}

// Only a script's descendants are waited for: what an ordinary rank leaves is killed.
TEST_F(Script, AnOrdinaryRanksDescendantsAreNot) {
  test_.launch.set_scripts(false);
  start("sleep 1000 & exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSEW");
}

}  // namespace
}  // namespace muster::worker
