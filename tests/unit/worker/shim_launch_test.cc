// The launcher shim, started as a script starts it: what its ranks leave, and where their logs are.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "common/io/file.h"
#include "common/process/spawn.h"
#include "tests/unit/worker/run_under_test.h"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

class ShimLaunch : public testing::Test {
 protected:
  ShimLaunch() {
    std::string pattern = (fs::temp_directory_path() / "launch.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    for (const char* name : {"torchrun", "msrun"})
      fs::create_symlink(RunUnderTest::program("muster-worker"), dir_ / name);
  }
  ~ShimLaunch() override { fs::remove_all(dir_); }
  // Launches as the second node of two, with one device each. Returns its status, as waitpid gives
  // it; -1: it does not end.
  int launch(const std::string& launcher, std::vector<std::string> words) const {
    words.insert(words.begin(), launcher);
    const auto pid =
        process::spawn({.path = (dir_ / launcher).string(),
                        .argv = words,
                        .env = {"PATH=/usr/bin:/bin", "PYTHON_EXEC=/bin/sh",
                                "MUSTER_SHIM_WORLD_SIZE=2", "MUSTER_SHIM_FIRST_RANK=1",
                                "MUSTER_NODES=2", "MUSTER_NODE_RANK=1", "MUSTER_DEVICES=0",
                                "MUSTER_SHIM_GRACE_MS=1000", "MUSTER_SHIM_LOGS=" + dir_.string(),
                                "MUSTER_SHIM_REPORT=" + (dir_ / "launches").string()},
                        .cwd = dir_.string()});
    const auto pidfd =
        pid ? process::Pidfd::open_child(*pid) : Result<process::Pidfd>(fail(Error(pid.error())));
    pollfd wait{.fd = pidfd ? pidfd->fd() : -1, .events = POLLIN, .revents = 0};
    int status = -1;
    if (!pidfd || ::poll(&wait, 1, kPatienceMs) != 1 || ::waitpid(*pid, &status, 0) != *pid)
      return -1;
    return status;
  }
  fs::path dir_;
};

// A DataLoader's workers, or Python's resource tracker, are in the rank's group, live when it ends,
// and are killed with that group. The worker would take their signal 9 for the end of something
// that the script had left.
TEST_F(ShimLaunch, ReapsWhatWasKilledWithARank) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  EXPECT_EQ(
      launch("torchrun", {"--no_python", "/bin/sh", "-c", "sleep 1000 & sleep 1000 & exit 0"}), 0);
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, 0), -1) << "it came to the one above the launcher";
  EXPECT_EQ(errno, ECHILD);
}

// The second launch finds that the first one, which was killed, is gone: for a script that tries
// again, the last launch counts.
TEST_F(ShimLaunch, TellsOfALaunchThatIsGone) {
  std::ofstream(dir_ / "launches") << "begin 999999999 1\n";
  EXPECT_EQ(launch("torchrun", {"--no_python", "/bin/true"}), 0);
  const auto text = io::read_file(dir_ / "launches", 65536);
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("begin 999999999 1\ngone 999999999\nbegin ")) << *text;
  EXPECT_TRUE(text->ends_with(" 0 0 \n")) << *text;
}

// The worker learns what is inside of a script only from this file.
TEST_F(ShimLaunch, TellsWhereItsRanksLogsAre) {
  EXPECT_EQ(launch("torchrun", {"--no_python", "/bin/true"}), 0);
  const auto text = io::read_file(dir_ / "launches", 65536);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("\nlog 1 " + (dir_ / "rank_1.log").string() + "\n"), std::string::npos)
      << *text;
}

TEST_F(ShimLaunch, MakesTheFoldersOfMsrunsLogs) {
  std::ofstream(dir_ / "train.sh") << "echo here\n";
  EXPECT_EQ(launch("msrun", {"--log_dir=a/b/c", "train.sh"}), 0);
  EXPECT_EQ(io::read_file(dir_ / "a/b/c/worker_1.log", 100).value_or(""), "here\n");
}

}  // namespace
}  // namespace muster::worker
