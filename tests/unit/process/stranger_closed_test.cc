// Processes that close their environment to other processes of their user (PR_SET_DUMPABLE,
// set-user-id programs). Root can read it all the same, so here an ordinary user sweeps, in a
// process of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "common/process/process_tag.h"

namespace muster::process {
namespace {

constexpr uid_t kNobody = 65534;

void be_ordinary() {
  if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(99);
}

// A process that is closed to its user, in a session of its own, until it is killed. A signal for
// it is a signal for all that it has started.
class Closed {
 public:
  Closed() {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      be_ordinary();
      ::setsid();
      ::prctl(PR_SET_DUMPABLE, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)!::write(ready[1], "", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~Closed() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;
  [[nodiscard]] ProcessId id() const { return *identify(pid_); }
  [[nodiscard]] bool killed() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_ && info.si_status == SIGKILL;
  }

 private:
  pid_t pid_ = -1;
};

struct Outcome {
  bool done = false;
  bool waits_for_it = false;
};

// How an ordinary user's sweep proceeds: to its end, or until it reports that it waits for
// `process`. Both run in a child.
Outcome sweep_as_ordinary_user(const Family& family, pid_t process) {
  const pid_t child = ::fork();
  if (child == 0) {
    be_ordinary();
    Family own = family;
    own.user = ::getuid();
    auto sweep = ProcessTagSweep::start("MUSTER_PROCESS_TAG",
                                        "closed/" + std::to_string(::getppid()), family.since, own);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (sweep && std::chrono::steady_clock::now() < until) {
      const auto progress = sweep->step();
      if (!progress) ::_exit(98);
      if (*progress == ProcessTagSweep::Progress::Done) ::_exit(1);
      for (const pid_t pid : sweep->waits_for()) {
        if (pid == process) ::_exit(2);
      }
      pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 1000);
    }
    ::_exit(97);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2))
      << status;
  return {.done = WIFEXITED(status) && WEXITSTATUS(status) == 1,
          .waits_for_it = WIFEXITED(status) && WEXITSTATUS(status) == 2};
}

// Regression: a rank that closed its environment counted as another user's process. The run was
// swept, and the rank lived on.
TEST(ClosedProcess, OfASessionOfTheRunIsKilled) {
  const Closed rank;
  const auto outcome = sweep_as_ordinary_user(
      {.leaders = {rank.id()}, .since = rank.id().start_time}, rank.id().pid);
  EXPECT_TRUE(outcome.done);
  EXPECT_TRUE(rank.killed());
}

TEST(ClosedProcess, ThatMayBeOfTheRunIsWaitedForAndNamed) {
  const Closed one;
  const auto outcome =
      sweep_as_ordinary_user({.leaders = {}, .since = one.id().start_time}, one.id().pid);
  EXPECT_TRUE(outcome.waits_for_it);
  EXPECT_FALSE(one.killed());
}

TEST(ClosedProcess, OfAnotherSessionWithTheSameNumberIsNotKilled) {
  const Closed one;
  const ProcessId gone{.pid = one.id().pid, .start_time = one.id().start_time - 1};
  EXPECT_TRUE(sweep_as_ordinary_user({.leaders = {gone}, .since = gone.start_time}, one.id().pid)
                  .waits_for_it);
  EXPECT_FALSE(one.killed());
}

// A user's own login or key agent must not delay his jobs.
TEST(ClosedProcess, OlderThanTheRunIsAStranger) {
  const Closed stranger;
  EXPECT_TRUE(sweep_as_ordinary_user({.leaders = {}, .since = stranger.id().start_time + 1},
                                     stranger.id().pid)
                  .done);
  EXPECT_FALSE(stranger.killed());
}

TEST(ClosedProcess, IsAStrangerWhenTheRunNeverHadAProcess) {
  const Closed stranger;
  EXPECT_TRUE(sweep_as_ordinary_user({.leaders = {}, .since = 0}, stranger.id().pid).done);
  EXPECT_FALSE(stranger.killed());
}

}  // namespace
}  // namespace muster::process
