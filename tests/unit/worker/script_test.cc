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
namespace fs = std::filesystem;

class Script : public testing::Test {
 protected:
  Script() { test_.launch.set_scripts(true); }
  void start(const std::string& line) {
    test_.shell(line);
    test_.start();
  }
  void fifo(const std::string& name) const { ASSERT_EQ(::mkfifo((test_.dir / name).c_str(), 0600), 0); }
  void open_fifo(const std::string& name) const { std::ofstream(test_.dir / name) << "go\n"; }
  [[nodiscard]] const rundir::v1::Exited* ended() {
    events_ = test_.events();
    return exit_of(events_, 0);
  }
  // What it has started belongs to the worker then.
  [[nodiscard]] bool script_gone() const {
    if (!test_.wait_for(Event::kStarted)) return false;
    const auto pidfd = process::Pidfd::open_child(pid_of(test_.events(), 0));
    pollfd wait{.fd = pidfd ? pidfd->fd() : -1, .events = POLLIN, .revents = 0};
    return !pidfd || ::poll(&wait, 1, kPatienceMs) == 1;
  }
  RunUnderTest test_;
  RunUnderTest::Events events_;
};

// The tutorials' loop: every rank in the background, its log elsewhere, and the script is done.
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
  EXPECT_EQ(events_.back().swept().killed(), 0U);
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

TEST_F(Script, ADescendantThatIsKilledIsToldAsThat) {
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
    const auto pid = process::spawn({.path = "/bin/sleep", .argv = {"sleep", "1000"}, .env = environment, .cwd = {}});
    EXPECT_TRUE(pid);
    // Until the new program's memory is there: a spawn returns a moment before that.
    const auto command = "/proc/" + std::to_string(*pid) + "/cmdline";
    for (auto text = io::read_file(command, 4096); text && text->empty(); text = io::read_file(command, 4096)) {
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

// bash dies of the SIGTERM at once; the rank behind it saves what it has first.
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
  EXPECT_THAT(test_.log(0), HasSubstr("the script ended with status 0, and rank 5 of the launcher inside was ended by signal 9"));
}

TEST_F(Script, HasTheShimFirstOnItsPath) {
  test_.launch.set_shim_dir((test_.dir / "shim").string());
  start("echo $PATH");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(test_.log(0), (test_.dir / "shim").string() + ":/usr/bin:/bin\n");
}

// Only a script's descendants are waited for: what a rank of the other kind leaves is killed.
TEST_F(Script, AnOrdinaryRanksDescendantsAreNot) {
  test_.launch.set_scripts(false);
  start("sleep 1000 & exit 0");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSEW");
}

}  // namespace
}  // namespace muster::worker
