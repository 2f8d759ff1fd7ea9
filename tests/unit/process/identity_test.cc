#include "common/process/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::process {
namespace {

TEST(Stat, NameMayHoldBracketsAndBlanks) {
  const auto stat = parse_stat(
      "42 (a) R 7 (b) S 1 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 25 "
      "18446744073709551615 1 2 3 4 5 6 7 8 9 0 0 0 17 1 0 0 0 0 0 11 12 13 14 "
      "15 16 17 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->group, 42);
  EXPECT_EQ(stat->session, 40);
  EXPECT_EQ(stat->flags, 4194304U);
  EXPECT_EQ(stat->start_time, 987654U);
  EXPECT_EQ(stat->rss_pages, 25U);
  EXPECT_EQ(stat->env_start, 16U);
  EXPECT_EQ(stat->env_end, 17U);
}

TEST(Stat, TextThatIsNoneIsAnError) {
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("1 (x) S 1 2"));
}

TEST(Identity, IsPidAndStartTime) {
  const auto own = self();
  ASSERT_TRUE(own);
  EXPECT_EQ(own->pid, ::getpid());
  EXPECT_TRUE(alive(*own));
  EXPECT_FALSE(alive({.pid = own->pid, .start_time = own->start_time + 1}));
  EXPECT_EQ(Pidfd::open({.pid = own->pid, .start_time = own->start_time + 1}).error().code,
            ErrorCode::NotFound);
}

TEST(Identity, AZombieDoesNotLiveAndAGoneOneIsNotFound) {
  const auto pid = spawn({.path = "/bin/true", .argv = {"true"}, .env = {}, .cwd = {}});
  ASSERT_TRUE(pid);
  const auto identity = identify(*pid);
  ASSERT_TRUE(identity);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(*pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(alive(*identity));
  EXPECT_TRUE(identify(*pid)) << "an unreaped child can be identified";
  ASSERT_EQ(::waitpid(*pid, nullptr, 0), *pid);
  EXPECT_EQ(identify(*pid).error().code, ErrorCode::NotFound);
  EXPECT_EQ(Pidfd::open(*identity).error().code, ErrorCode::NotFound);
}

TEST(PidfdOf, SignalsAndTellsTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const auto pid = spawn({.path = "/bin/cat",
                          .argv = {"cat"},
                          .env = {},
                          .cwd = {},
                          .standard_in = {.path = "/dev/fd/" + std::to_string(ends[0])}});
  ASSERT_TRUE(pid);
  const auto pidfd = Pidfd::open_child(*pid);
  ASSERT_TRUE(pidfd);
  EXPECT_FALSE(pidfd->exited());
  ASSERT_TRUE(pidfd->signal(SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(*pid, &status, 0), *pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(pidfd->exited());
  EXPECT_EQ(pidfd->signal(SIGKILL).error().code, ErrorCode::NotFound);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Boot, IdHasTheKernelsForm) {
  const auto id = boot_id();
  ASSERT_TRUE(id);
  EXPECT_EQ(id->str().size(), 36U);
  EXPECT_EQ(*id, *boot_id());
}

}  // namespace
}  // namespace muster::process
