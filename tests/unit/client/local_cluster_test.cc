#include "client/commands/local/local_cluster.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "client/commands/call/local_paths.h"
#include "common/io/file.h"
#include "common/process/identity.h"
#include "common/process/spawn.h"
#include "common/rundir/layout.h"
#include "common/rundir/records.h"

namespace muster::client {
namespace {

// A cluster whose daemons do not run, and one run directory that a worker has claimed: this worker
// is a process of the test.
class LocalDownTest : public testing::Test {
 protected:
  LocalDownTest() {
    std::string made = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
    dir_ = ::mkdtemp(made.data());
    process::SpawnRequest request;
    request.path = "/usr/bin/tail";
    request.argv = {"tail", "-f", "/dev/null"};
    worker_ = process::spawn(request).value_or(0);
  }
  ~LocalDownTest() override {
    if (worker_ > 0) {
      ::kill(worker_, SIGKILL);
      ::waitpid(worker_, nullptr, 0);
    }
    std::filesystem::remove_all(dir_);
  }
  void claim(const std::string& boot) {
    const auto process = process::identify(worker_);
    ASSERT_TRUE(process.has_value());
    const rundir::RunLayout run(
        rundir::AgentLayout(local_agent_dir(dir_, "n0")).run(JobId("0123456789abc"), AttemptNo(1)));
    ASSERT_TRUE(io::make_dirs(run.root(), 0700).has_value());
    rundir::v1::Claim record;
    record.set_pid(static_cast<std::uint64_t>(worker_));
    record.set_start_time(process->start_time);
    record.set_boot_id(boot);
    ASSERT_TRUE(rundir::write_claim(run, record).value_or(false));
    ASSERT_TRUE(io::replace_file(local_processes(dir_), "[]", io::Durable::No).has_value());
  }
  void down() {
    Context context;
    const auto done = local_down(context, dir_, std::chrono::milliseconds(100));
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  // The signal that ended it: this test's own, unless it had been killed before.
  int ended_by() {
    if (worker_ <= 0) return 0;
    siginfo_t info{};
    EXPECT_EQ(::kill(worker_, SIGTERM), 0);
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(worker_), &info, WEXITED | WNOWAIT), 0);
    return info.si_status;
  }
  std::filesystem::path dir_;
  pid_t worker_ = 0;
};

TEST_F(LocalDownTest, KillsTheWorkerThatClaimed) {
  claim(process::boot_id()->str());
  down();
  EXPECT_EQ(ended_by(), SIGKILL);
}

// A pid and a start time may repeat after a reboot: the process that has them then is no worker of
// this cluster.
TEST_F(LocalDownTest, LeavesAProcessAloneThatHasTheNumbersOfAnotherBoot) {
  claim("another boot");
  down();
  EXPECT_EQ(ended_by(), SIGTERM);
}

}  // namespace
}  // namespace muster::client
