// Ranks that run as another user than the agent: which user, what they may write, and that they
// have no access to the run directory. The controller believes an attempt's exits, so a rank must
// not be able to write them.
#include <sys/stat.h>

#include "agent/start/start_checks.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

constexpr const char* kOther = "nobody";

TEST(AnotherUser, RunsAsHimAndCannotTouchTheRunDirectory) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root starts processes as another user; this is user " << ::geteuid();
  const auto user = find_user(kOther);
  ASSERT_TRUE(user) << user.error().message;
  const TempDir dir;
  // The working directory; the state directory below restricts itself.
  std::filesystem::permissions(dir.path(), static_cast<std::filesystem::perms>(0755));
  const rundir::RunLayout run(dir.path() / "state/runs" / (kRun.first.str() + ".1"));
  const std::string root = run.root().string();
  {
    HostIncarnation agent(dir.path() / "state");
    v1::NodeLaunch launch = shell_launch(
        dir.path(),
        "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; grep CapEff /proc/self/status\n"
        "echo again >> /dev/stderr\n"
        "touch out/mine && echo wrote\n"
        "for file in events claim lease launch mark wake_fifo; do (echo forged >> " +
            root +
            "/$file) 2>/dev/null && echo $file is open; done\n"
            "(echo forged > " +
            root +
            "/new) 2>/dev/null && echo directory is open\n"
            "(ls " +
            root + " || cat " + root +
            "/launch) 2>/dev/null && echo readable\n"
            "ls /proc/self/fd > out/fds; tr '\\n' ' ' < out/fds; echo; exit 5");
    launch.set_user(kOther);
    launch.add_make_dirs((dir.path() / "out").string());
    agent.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
    const RunSeen seen = agent.seen();
    EXPECT_FALSE(seen.start_failed) << *seen.start_failed;
    ASSERT_TRUE(seen.exits.contains(0));
    EXPECT_EQ(seen.exits.at(0).code, 5) << "as the worker saw it";
    EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
  }
  std::string groups;
  for (const std::uint32_t group : user->groups)
    groups += (groups.empty() ? "" : " ") + std::to_string(group);
  const std::string uid = std::to_string(user->uid), gid = std::to_string(user->gid);
  EXPECT_EQ(read_text(run.rank_log(0)),
            uid + "\n" + gid + "\n" + groups + "\n" + user->home + " " + kOther + " " + kOther +
                "\nCapEff:\t0000000000000000\nagain\nwrote\n0 1 2 3 \n");
  struct stat info{};
  ASSERT_EQ(::stat(run.rank_log(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, user->uid) << "its log is its own";
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((dir.path() / "out").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, user->uid);
  for (const auto& path : {dir.path() / "state", run.root(), run.logs(), run.events(), run.claim(),
                           run.lease(), run.launch(), run.wake_fifo()}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, 0U) << path;
    EXPECT_EQ(info.st_mode & 0077U, 0U) << path << " is open to others";
  }
  const auto left = process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(),
                                               5'000, {.run = user->uid});
  EXPECT_EQ(left ? *left : 1U, 0U);
}

TEST(AnotherUser, NeedsRootAndSaysSo) {
  // Acts as an agent that is not root: all threads of this process change, and change back.
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(find_user(kOther)->uid), 0);
  }
  v1::NodeLaunch launch;
  launch.set_user("root");
  UserEntry user;
  bool set_user = false;
  const auto refusal = check_user(launch, user, set_user);
  const std::string own = std::to_string(::geteuid());
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(refusal->text, "starting as user 'root': the agent runs as user " + own +
                               " and only root may start others' processes; run the agent as root, "
                               "or leave runtime.user out");
  EXPECT_FALSE(set_user);
}

}  // namespace
}  // namespace muster::agent
