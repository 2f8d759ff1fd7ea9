// Somebody sets the clock while ranks run: time synchronization after a boot, an operator, a
// resumed virtual machine. A worker that used this clock for its waits would kill at once or never.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/worker/run_under_test.h"
#include "worker/supervisor.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using rundir::v1::StopRequested;
using std::chrono::milliseconds;

// At each reading, the wall clock differs by a day or a year.
class SetClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    Now now = system_clock().now();
    ++readings_;
    now.wall +=
        std::chrono::hours(readings_ % 2 == 0 ? 24 : -8'760) * static_cast<int>(readings_ % 5);
    return now;
  }

 private:
  mutable std::uint64_t readings_ = 0;
};

// A worker in a child of this process, because it needs the test's clock.
pid_t supervise(const RunUnderTest& test) {
  EXPECT_TRUE(rundir::write_launch(test.run, test.launch));
  const pid_t pid = ::fork();  // tidy: allow (the worker is single-threaded, and so is this test)
  if (pid != 0) return pid;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  block_signals();
  static const SetClock clock;
  auto events = EventQueue::open(test.run, test.boot, clock);
  if (!events) ::_exit(2);
  Supervisor supervisor(test.run, test.boot, std::move(*events), clock);
  ::_exit(supervisor.run() ? 0 : 1);
}

int end_of(pid_t worker) {
  const auto pidfd = process::Pidfd::open_child(worker);
  pollfd wait{.fd = pidfd ? pidfd->fd() : -1, .events = POLLIN, .revents = 0};
  const bool ended = ::poll(&wait, 1, kPatienceMs) == 1;
  if (!ended) ::kill(worker, SIGKILL);
  int status = -1;
  ::waitpid(worker, &status, 0);
  return ended ? status : -1;
}

TEST(SetClockTest, ALeaseThatIsGoodStaysGoodAndTheGraceOfAStopIsKept) {
  RunUnderTest test;
  test.launch.set_stop_grace_ms(300);
  test.shell("trap '' TERM; touch ready; exec " + RunUnderTest::program("stub_trainer").string() +
             " --block");
  test.lease_for(std::chrono::minutes(10));
  const pid_t worker = supervise(test);
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  ASSERT_EQ(::kill(worker, SIGTERM), 0);
  EXPECT_EQ(end_of(worker), 0);
  const auto events = test.events();
  ASSERT_EQ(kinds(events), "RSQEW");
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(), StopRequested::WHY_ASKED);
  EXPECT_EQ(exit_of(events, 0)->signal(), SIGKILL);
  EXPECT_GE(Duration(events[3].boot_ns() - events[2].boot_ns()), milliseconds(300))
      << "killed before its grace was over";
}

TEST(SetClockTest, ALeaseThatRunsOutEndsTheRanks) {
  RunUnderTest test;
  test.stub({"--block"});
  test.lease_for(milliseconds(1500));  // a start takes less, also on a busy machine
  EXPECT_EQ(end_of(supervise(test)), 0);
  const auto events = test.events();
  ASSERT_EQ(kinds(events), "RSQEW");
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ORPHANED);
  EXPECT_GE(first(events, Event::kStopRequested)->boot_ns(),
            (*rundir::read_lease(test.run))->until_boot_ns());
}

}  // namespace
}  // namespace muster::worker
