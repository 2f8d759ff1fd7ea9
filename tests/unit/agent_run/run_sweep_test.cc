#include "agent/run/run_sweep.h"

#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "common/process/spawn.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::filesystem::perms;

class RunSweepTest : public ::testing::Test {
 protected:
  ~RunSweepTest() override {
    on_loop([&] { sweep_.reset(); });
    loop_.stop();
    for (const pid_t pid : pids_) {
      if (::waitpid(pid, nullptr, WNOHANG) != 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  void on_loop(const std::function<void()>& task) { test::run_on(loop_, task); }
  // A process in a session of its own, with this process tag.
  pid_t start(const std::string& tag) {
    auto pid = process::spawn({.path = "sleep",
                               .argv = {"sleep", "1000"},
                               .env = {std::string(rundir::kProcessTagVariable) + "=" + tag},
                               .cwd = {},
                               .new_session = true});
    EXPECT_TRUE(pid);
    if (pid) pids_.push_back(*pid);
    return pid.value_or(0);
  }
  // The signal by which it has ended; 0: it lives.
  static int ended_by(pid_t pid) {
    int status = 0;
    return ::waitpid(pid, &status, WNOHANG) == pid ? WTERMSIG(status) : 0;
  }
  // A tool for containers, which is a shell script.
  [[nodiscard]] std::optional<rundir::v1::ContainerLaunch> container(
      const std::string& script) const {
    const std::filesystem::path tool = dir_.write("tool", "#!/bin/sh\n" + script);
    std::filesystem::permissions(tool, perms::owner_all);
    rundir::v1::ContainerLaunch container;
    container.set_name("box");
    container.add_tool(tool.string());
    return container;
  }
  // The result, or nothing if there is none in time. The callback destroys the sweep.
  std::optional<bool> sweep(RunSweep::Options options) {
    options.name = "job.1";
    options.process_tag = run_process_tag();
    std::promise<bool> result;
    auto future = result.get_future();
    on_loop([&] {
      sweep_ = std::make_unique<RunSweep>(
          loop_, std::move(options),
          RunSweep::Callbacks{
              .ended =
                  [&](bool swept) {
                    sweep_.reset();
                    result.set_value(swept);
                  },
              .trouble = [&](const std::string& text) { troubles_.push_back(text); }});
      sweep_->begin();
    });
    if (future.wait_for(std::chrono::seconds(20)) == std::future_status::ready) return future.get();
    on_loop([&] { sweep_.reset(); });
    return std::nullopt;
  }

  TempDir dir_;
  async::Loop loop_{"test-sweep"};
  std::unique_ptr<RunSweep> sweep_;
  std::vector<std::string> troubles_;
  std::vector<pid_t> pids_;
};

TEST_F(RunSweepTest, KillsWhatHasTheTagOfItsRunAlone) {
  const pid_t one = start(run_process_tag()), two = start(run_process_tag());
  const pid_t other = start(run_process_tag() + "0");
  EXPECT_EQ(sweep({}), true);
  EXPECT_EQ(ended_by(one), SIGKILL);
  EXPECT_EQ(ended_by(two), SIGKILL);
  EXPECT_EQ(ended_by(other), 0);
  EXPECT_TRUE(troubles_.empty()) << troubles_.front();
}

TEST_F(RunSweepTest, OfARunThatHasLeftNothingEnds) {
  EXPECT_EQ(sweep({.group = (dir_.path() / "gone").string()}), true);
  EXPECT_TRUE(troubles_.empty()) << troubles_.front();
}

TEST_F(RunSweepTest, KillsTheSessionsOfItsRanksWithoutTheTag) {
  const pid_t rank = start("another-tag");
  const auto id = process::identify(rank);
  ASSERT_TRUE(id);
  EXPECT_EQ(sweep({.since = id->start_time,
                   .family = process::Family{.leaders = {*id}, .since = id->start_time}}),
            true);
  EXPECT_EQ(ended_by(rank), SIGKILL);
}

TEST_F(RunSweepTest, RemovesTheContainerWhenItsProcessesHaveEnded) {
  const pid_t rank = start(run_process_tag());
  const std::filesystem::path seen = dir_.path() / "seen";
  EXPECT_EQ(
      sweep({.container = container(
                 "exec >> '" + seen.string() + "'\necho \"$*\"\nwhile read -r key value; do\n" +
                 "  if [ \"$key\" = State: ]; then echo \"$value\"; fi\ndone < /proc/" +
                 std::to_string(rank) + "/status\n")}),
      true);
  EXPECT_EQ(read_text(seen), "rm --force --volumes --ignore box\nZ (zombie)\n") << "once";
  EXPECT_TRUE(troubles_.empty()) << troubles_.front();
}

TEST_F(RunSweepTest, IsOverAlsoIfTheContainerIsNotRemoved) {
  EXPECT_EQ(sweep({.container = container("exit 3\n")}), true);
  EXPECT_EQ(troubles_, (std::vector<std::string>{
                           "removing container 'box': '" + (dir_.path() / "tool").string() +
                           " rm --force' ended badly (status 3); no process of its run is left"}));
}

TEST_F(RunSweepTest, IsOverAlsoIfTheContainersToolIsNotKnown) {
  rundir::v1::ContainerLaunch without_tool;
  without_tool.set_name("box");
  EXPECT_EQ(sweep({.container = without_tool}), true);
  EXPECT_EQ(troubles_, (std::vector<std::string>{
                           "removing container 'box': its launch record does not say by which "
                           "tool; no process of its run is left"}));
}

}  // namespace
}  // namespace muster::agent
