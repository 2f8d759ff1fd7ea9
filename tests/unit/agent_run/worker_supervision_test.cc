#include "agent/run/worker_supervision.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "common/process/spawn.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kNow{seconds(1000)};

class SetClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override { return {.wall = {}, .boot = boot}; }
  BootTime boot = kNow;
};

// The stop grace is 2 s, the margin 5 s. The clock stands still; timers use the real one.
class WorkerSupervisionTest : public ::testing::Test {
 protected:
  WorkerSupervisionTest() {
    on_loop([&] {
      supervision_ = std::make_unique<WorkerSupervision>(
          loop_, WorkerSupervision::Options{.margin = seconds(5), .clock = &clock_},
          WorkerSupervision::Callbacks{.child_ended = [this] { note("child ended"); },
                                       .worker_ended = [this] { note("worker ended"); },
                                       .overdue = [this] { note("overdue"); }});
    });
  }
  ~WorkerSupervisionTest() override {
    on_loop([&] { supervision_.reset(); });
    loop_.stop();
    for (const pid_t pid : pids_) {
      if (::waitpid(pid, nullptr, WNOHANG) != 0) continue;
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  void on_loop(const std::function<void()>& task) { test::run_on(loop_, task); }
  void note(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      happened_.push_back(what);
    }
    more_.notify_all();
  }
  bool wait_for(const std::string& what) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, seconds(10),
                          [&] { return std::ranges::count(happened_, what) == 1; });
  }
  bool happened(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count(happened_, what) > 0;
  }
  pid_t start(const std::string& script) {
    auto pid = process::spawn({.path = "sh",
                               .argv = {"sh", "-c", script},
                               .env = process::own_environment(),
                               .cwd = {},
                               .new_session = true});
    EXPECT_TRUE(pid);
    if (pid) pids_.push_back(*pid);
    return pid.value_or(0);
  }
  // A process that has claimed the run.
  pid_t start_worker(const std::string& script) {
    const pid_t pid = start(script);
    const BootId boot = *process::boot_id();
    EXPECT_TRUE(rundir::make_run(layout_));
    rundir::v1::Launch launch;
    launch.set_version(rundir::kVersion);
    launch.set_boot_id(boot.str());
    launch.set_stop_grace_ms(2'000);
    EXPECT_TRUE(rundir::write_launch(layout_, launch));
    rundir::v1::Claim claim;
    claim.set_pid(static_cast<std::uint64_t>(pid));
    claim.set_start_time(process::identify(pid)->start_time);
    claim.set_boot_id(boot.str());
    EXPECT_TRUE(rundir::write_claim(layout_, claim));
    view_ = std::make_unique<RunView>(layout_, boot);
    read();
    EXPECT_EQ(seen_.worker, WorkerState::Alive);
    return pid;
  }
  void read() {
    EXPECT_TRUE(view_->refresh());
    seen_ = view_->seen();
  }
  static bool wait_until_stopped(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
           info.si_code == CLD_STOPPED;
  }
  std::string judge(BootTime at, BootTime lease) {
    std::string why;
    on_loop([&] {
      clock_.boot = at;
      why = supervision_->judge(*view_, seen_, lease);
    });
    return why;
  }
  std::optional<std::string> check_frozen() {
    std::optional<std::string> why;
    on_loop([&] { why = supervision_->check_frozen(*view_, seen_); });
    return why;
  }

  TempDir dir_;
  rundir::RunLayout layout_{dir_.path() / "run"};
  SetClock clock_;
  async::Loop loop_{"test-worker"};
  std::unique_ptr<WorkerSupervision> supervision_;
  std::unique_ptr<RunView> view_;
  RunSeen seen_;
  std::vector<pid_t> pids_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> happened_;
};

TEST_F(WorkerSupervisionTest, ReapsItsChild) {
  const pid_t pid = start("exit 3");
  on_loop([&] {
    ASSERT_TRUE(supervision_->spawned(pid));
    EXPECT_TRUE(supervision_->has_child());
  });
  ASSERT_TRUE(wait_for("child ended"));
  on_loop([&] { EXPECT_FALSE(supervision_->has_child()); });
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1) << "a zombie is left";
}

TEST_F(WorkerSupervisionTest, OfAForgottenRunWaitsForTheChildAlone) {
  const pid_t pid = start_worker("exec sleep 1000");
  on_loop([&] {
    ASSERT_TRUE(supervision_->spawned(pid));
    supervision_->update(*view_, seen_, kNow - seconds(1));
    supervision_->leave([this] { note("left"); });
  });
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_TRUE(wait_for("left"));
  EXPECT_FALSE(happened("child ended"));
  EXPECT_FALSE(happened("worker ended"));
}

TEST_F(WorkerSupervisionTest, SeesTheEndOfAWorkerThatAnotherAgentSpawned) {
  const pid_t pid = start_worker("exec sleep 1000");
  on_loop([&] { supervision_->update(*view_, seen_, {}); });
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(wait_for("worker ended"));
}

TEST_F(WorkerSupervisionTest, AsksToStopOnce) {
  const pid_t pid = start_worker("exec sleep 1000");
  on_loop([&] {
    EXPECT_FALSE(supervision_->stop_signalled());
    const auto first = supervision_->stop(*view_);
    EXPECT_TRUE(first && *first);
    const auto second = supervision_->stop(*view_);
    EXPECT_TRUE(second && !*second);
    EXPECT_TRUE(supervision_->stop_signalled());
  });
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST_F(WorkerSupervisionTest, AStopOfAWorkerThatIsGoneFails) {
  const pid_t pid = start_worker("exec sleep 1000");
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  on_loop([&] {
    const auto sent = supervision_->stop(*view_);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, ErrorCode::NotFound);
    EXPECT_FALSE(supervision_->stop_signalled());
  });
}

TEST_F(WorkerSupervisionTest, MustEndTheRunInItsGraceAfterAStop) {
  start_worker("exec sleep 1000");
  const BootTime lease = kNow + seconds(60);
  EXPECT_EQ(judge(kNow + seconds(8), lease), "") << "nobody has asked it";
  on_loop([&] {
    clock_.boot = kNow;
    EXPECT_TRUE(supervision_->stop(*view_));
  });
  EXPECT_EQ(judge(kNow + milliseconds(6'999), lease), "");
  EXPECT_EQ(judge(kNow + seconds(7), lease), "was asked to stop and has not ended the run in time");
  seen_.swept = true;
  EXPECT_EQ(judge(kNow + seconds(7), lease), "");
}

TEST_F(WorkerSupervisionTest, MustStopAtTheEndOfItsLease) {
  start_worker("exec sleep 1000");
  const BootTime lease = kNow + seconds(60);
  EXPECT_EQ(judge(lease + milliseconds(1'999), lease), "");
  EXPECT_EQ(judge(lease + seconds(2), lease),
            "has not stopped its ranks at the end of the orphan grace");
}

TEST_F(WorkerSupervisionTest, ThatHasWrittenItsStopHasItsGrace) {
  start_worker("exec sleep 1000");
  const BootTime lease = kNow + seconds(60), stopped = lease - seconds(1);
  auto events = rundir::EventWriter::open(layout_.events());
  ASSERT_TRUE(events);
  rundir::v1::Event event =
      rundir::stamped_event({.now = {.wall = {}, .boot = stopped}, .boot = *process::boot_id()});
  event.mutable_stop_requested();
  ASSERT_TRUE(events->append(event));
  read();
  EXPECT_EQ(judge(stopped + milliseconds(6'999), lease), "");
  EXPECT_EQ(judge(stopped + seconds(7), lease),
            "was asked to stop and has not ended the run in time");
}

TEST_F(WorkerSupervisionTest, IsOverdueAtTheEarlierOfTwoTimes) {
  start_worker("exec sleep 1000");
  on_loop([&] { supervision_->update(*view_, seen_, kNow + seconds(3'600)); });
  on_loop([&] { supervision_->update(*view_, seen_, kNow - milliseconds(1'990)); });
  EXPECT_TRUE(wait_for("overdue"));
}

TEST_F(WorkerSupervisionTest, StoppedWithoutALivingRankIsFoundByTheSecondCheck) {
  const pid_t pid = start_worker("true & kill -STOP $$");
  ASSERT_TRUE(wait_until_stopped(pid));
  EXPECT_EQ(check_frozen(), "");
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  std::optional<std::string> why = check_frozen();
  while (why == "" && std::chrono::steady_clock::now() < deadline) why = check_frozen();
  EXPECT_EQ(why, "is stopped though its ranks have ended");
  on_loop([&] { EXPECT_TRUE(supervision_->kill(*view_)); });
  EXPECT_EQ(check_frozen(), std::nullopt);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(WorkerSupervisionTest, StoppedWithALivingRankIsLeftAlone) {
  const pid_t pid = start_worker("sleep 1000 & kill -STOP $$");
  ASSERT_TRUE(wait_until_stopped(pid));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(check_frozen(), "");
}

}  // namespace
}  // namespace muster::agent
