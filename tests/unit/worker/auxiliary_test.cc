// Auxiliary processes (MindSpore's scheduler): started before the ranks, stopped with them, and
// what their end means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <tuple>

#include "common/io/file.h"
#include "tests/unit/worker/run_under_test.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using rundir::v1::StopRequested;
using std::chrono::milliseconds;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Auxiliary : public testing::Test {
 protected:
  rundir::v1::AuxiliaryLaunch& auxiliary(const std::string& line,
                                         const std::string& name = "scheduler") {
    auto& added = *test_.launch.add_auxiliaries();
    added.set_name(name);
    for (const char* word : {"/bin/sh", "-c"}) added.add_argv(word);
    added.add_argv(line);
    added.set_cwd(test_.dir.string());
    added.add_env("PATH=/usr/bin:/bin");
    added.set_log(test_.run.auxiliary_log(name).string());
    return added;
  }
  [[nodiscard]] static std::string stub() { return RunUnderTest::program("stub_trainer").string(); }
  [[nodiscard]] std::string log(const std::string& name = "scheduler") const {
    const auto text = io::read_file(test_.run.auxiliary_log(name), 1U << 20U);
    return text ? *text : "(" + text.error().message + ")";
  }
  [[nodiscard]] const Event* ended() const {
    events_ = test_.events();
    return first(events_, Event::kAuxiliaryExited);
  }
  void fifo(const std::string& name) const {
    ASSERT_EQ(::mkfifo((test_.dir / name).c_str(), 0600), 0);
  }

  RunUnderTest test_;
  mutable RunUnderTest::Events events_;
};

TEST_F(Auxiliary, HasItsOwnEnvironmentDirectoryAndLog) {
  test_.launch.add_env("COMMON=of the ranks");
  fs::create_directory(test_.dir / "own");
  auto& added = auxiliary("env | grep -v '^_=' | sort; pwd; echo err >&2");
  added.add_env("MS_ROLE=MS_SCHED");
  added.add_env("MUSTER_PROCESS_TAG=forged");
  added.set_cwd((test_.dir / "own").string());
  test_.shell("exit 0");
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(log(), "MS_ROLE=MS_SCHED\nMUSTER_PROCESS_TAG=" + test_.launch.process_tag() +
                       "\nPATH=/usr/bin:/bin\nPWD=" + (test_.dir / "own").string() + "\n" +
                       (test_.dir / "own").string() + "\nerr\n");
  EXPECT_EQ(fs::status(test_.run.auxiliary_log("scheduler")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  const auto events = test_.events();
  ASSERT_NE(first(events, Event::kAuxiliaryStarted), nullptr);
  EXPECT_EQ(first(events, Event::kAuxiliaryStarted)->auxiliary_started().name(), "scheduler");
  EXPECT_GT(first(events, Event::kAuxiliaryStarted)->auxiliary_started().start_time(), 0U);
}

TEST_F(Auxiliary, AGoodEndIsRecordedAndNothingElse) {
  auxiliary("exit 0");
  fifo("go");
  test_.shell("read line < go; exit 0");
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kAuxiliaryExited));
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  std::ofstream(test_.dir / "go") << "go\n";
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(first(events_, Event::kStopRequested), nullptr);
  EXPECT_EQ(exit_of(events_, 0)->code(), 0);
  EXPECT_EQ(ended()->auxiliary_exited().name(), "scheduler");
  EXPECT_EQ(ended()->auxiliary_exited().code(), 0);
}

TEST_F(Auxiliary, ABadEndStopsTheRanks) {
  for (const auto& [line, code, signal] :
       {std::tuple("read line < go; exit 3", 3, 0),
        std::tuple("read line < go; kill -ABRT $$", -1, SIGABRT)}) {
    RunUnderTest test;
    auto& added = *test.launch.add_auxiliaries();
    added.set_name("scheduler");
    for (const char* word : {"/bin/sh", "-c", line}) added.add_argv(word);
    added.set_cwd(test.dir.string());
    added.set_log(test.run.auxiliary_log("scheduler").string());
    ASSERT_EQ(::mkfifo((test.dir / "go").c_str(), 0600), 0);
    for (int i = 0; i < 2; ++i) test.stub({"--block"});
    test.start();
    ASSERT_TRUE(test.wait_for(Event::kStarted));
    std::ofstream(test.dir / "go") << "go\n";
    EXPECT_EQ(test.wait_worker(), 0);
    const auto events = test.events();
    EXPECT_THAT(kinds(events), testing::AnyOf("CRRSXQEEW", "RCRSXQEEW", "RRCSXQEEW"));
    const auto* bad = first(events, Event::kAuxiliaryExited);
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(bad->auxiliary_exited().code(), code);
    EXPECT_EQ(bad->auxiliary_exited().signal(), signal);
    EXPECT_FALSE(bad->auxiliary_exited().stop_requested());
    EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(),
              StopRequested::WHY_AUXILIARY_FAILED);
    for (const std::uint32_t rank : {0U, 1U}) {
      EXPECT_EQ(exit_of(events, rank)->signal(), SIGTERM);
      EXPECT_TRUE(exit_of(events, rank)->stop_requested());
    }
  }
}

TEST_F(Auxiliary, AStopEndsIt) {
  auxiliary("exec " + stub() + " --block");
  test_.stub({"--block"});
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->auxiliary_exited().signal(), SIGTERM);
  EXPECT_TRUE(ended()->auxiliary_exited().stop_requested());
  EXPECT_EQ(first(events_, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ASKED);
}

// Its ranks are done: it ends by itself a moment later, as MindSpore's scheduler does.
TEST_F(Auxiliary, EndsItselfAfterTheRanks) {
  fifo("done");
  auxiliary("read line < done; exit 0");
  test_.shell("exit 0");
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kExited));
  EXPECT_EQ(kinds(test_.events()).find('W'), std::string::npos)
      << "not before the auxiliary process has ended";
  std::ofstream(test_.dir / "done") << "done\n";
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(first(events_, Event::kStopRequested), nullptr);
  EXPECT_EQ(ended()->auxiliary_exited().code(), 0);
}

// Ranks of other nodes may still need it: only the controller knows when the last of them has
// ended, and orders the stop.
TEST_F(Auxiliary, OutlivesTheRanksOfItsNodeUntilTheStop) {
  test_.launch.set_stop_grace_ms(50);
  const std::string up = (test_.dir / "up").string();
  auxiliary("trap '' TERM; : > " + up + "; exec " + stub() + " --block");
  test_.shell("exit 0");
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kExited));
  ASSERT_TRUE(test_.wait_for_file(up));
  EXPECT_EQ(kinds(test_.events()).find('W'), std::string::npos);
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->auxiliary_exited().signal(), SIGKILL);
  EXPECT_TRUE(ended()->auxiliary_exited().stop_requested());
  EXPECT_EQ(first(events_, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ASKED);
  EXPECT_FALSE(first(events_, Event::kExited)->exited().stop_requested());
  EXPECT_EQ(kinds(events_).back(), 'W');
}

TEST_F(Auxiliary, ThatCannotBeExecutedFailsTheStartByItsName) {
  auxiliary("exit 0").set_argv(0, "/no/such/python");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  const auto events = test_.events();
  const auto* failed = first(events, Event::kStartFailed);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->start_failed().error(), ENOENT);
  EXPECT_EQ(failed->start_failed().text(),
            "starting auxiliary process 'scheduler': executing '/no/such/python': No such file or "
            "directory");
  EXPECT_EQ(first(events, Event::kStarted), nullptr);
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_START_FAILED);
  EXPECT_EQ(kinds(events).back(), 'W');
}

TEST_F(Auxiliary, DiesWithItsWorkerAndItsLeftoversAreSwept) {
  auxiliary("setsid --wait sh -c '" + stub() + " --block & exit'; : > ready; exec " + stub() +
            " --block");
  test_.stub({"--block"});
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  const auto events = test_.events();
  const auto pidfd = process::Pidfd::open(*process::identify(
      static_cast<pid_t>(first(events, Event::kAuxiliaryStarted)->auxiliary_started().pid())));
  ASSERT_TRUE(pidfd);
  EXPECT_EQ(test_.carriers(), 3U) << "a rank, the process, and what it has started apart";
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_TRUE(pidfd->exited());
  EXPECT_EQ(test_.carriers(), 0U);
}

}  // namespace
}  // namespace muster::worker
