#include "common/process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace muster::process {
namespace {

struct Outcome {
  std::string text;
  int status = -1;
};

// Runs a shell line with the request's settings, and reads its output through a pipe.
Outcome run(const std::string& line, SpawnRequest request) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  request.path = "/bin/sh";
  request.argv = {"sh", "-c", line};
  request.out_fd = ends[1];
  const auto pid = spawn(request);
  ::close(ends[1]);
  Outcome outcome;
  char room[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], room, sizeof room)) > 0;)
    outcome.text.append(room, static_cast<std::size_t>(count));
  ::close(ends[0]);
  if (pid) ::waitpid(*pid, &outcome.status, 0);
  return outcome;
}

TEST(Spawn, GivesExactlyTheEnvironmentAndDirectory) {
  const auto outcome = run("/usr/bin/env | sort | grep -v '^_='; pwd",
                           {.path = "", .argv = {}, .env = {"B=2", "A=1"}, .cwd = "/usr"});
  EXPECT_EQ(outcome.text, "A=1\nB=2\nPWD=/usr\n/usr\n");
}

TEST(Spawn, ClosesEverythingElse) {
  const int leak = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  const auto outcome =
      run("ls /proc/$$/fd", {.path = "", .argv = {}, .env = {"PATH=/usr/bin:/bin"}, .cwd = {}});
  ::close(leak);
  EXPECT_EQ(outcome.text, "0\n1\n2\n");
}

TEST(Spawn, EmptiesTheSignalMaskAndMakesASession) {
  sigset_t set;
  sigset_t old;
  ::sigfillset(&set);
  ::sigprocmask(SIG_SETMASK, &set, &old);
  const auto outcome =
      run("grep SigBlk /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$",
          {.path = "", .argv = {}, .env = {"PATH=/usr/bin:/bin"}, .cwd = {}, .new_session = true});
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  const std::string mask = "SigBlk:\t0000000000000000\n";
  ASSERT_TRUE(outcome.text.starts_with(mask)) << outcome.text;
  const auto rest = outcome.text.substr(mask.size());
  const auto line = rest.find('\n');
  EXPECT_EQ(rest.substr(0, line + 1), rest.substr(line + 1)) << outcome.text;
}

TEST(Spawn, IgnoresNothingThatTheCallerIgnores) {
  const auto old = ::signal(SIGTERM, SIG_IGN);
  const auto outcome =
      run("kill -TERM $$; echo survived", {.path = "", .argv = {}, .env = {}, .cwd = {}});
  ::signal(SIGTERM, old);
  EXPECT_EQ(outcome.text, "");
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGTERM);
}

TEST(Spawn, SaysWhatCannotBeExecuted) {
  const auto pid = spawn({.path = "/no/such/program", .argv = {"x"}, .env = {}, .cwd = {}});
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().message, "executing '/no/such/program': No such file or directory");
  EXPECT_EQ(pid.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::process
