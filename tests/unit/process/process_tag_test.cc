#include "common/process/process_tag.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "common/process/spawn.h"
#include "tests/unit/process/stranger.h"

namespace muster::process {
namespace {

namespace fs = std::filesystem;
constexpr int kPatienceMs = 20000;
constexpr const char* kName = "MUSTER_PROCESS_TAG";

std::string stub() {
  return (fs::read_symlink("/proc/self/exe").parent_path() / "stub_trainer").string();
}

// Unique for each test: tests of other builds may run in parallel.
std::string unique_value(const char* test) {
  return std::string(test) + "/" + std::to_string(::getpid());
}

pid_t start(const std::string& value, std::vector<std::string> more = {}) {
  std::vector<std::string> argv = {stub(), "--block"};
  argv.insert(argv.end(), more.begin(), more.end());
  auto pid = spawn({.path = stub(),
                    .argv = argv,
                    .env = {"A=1", std::string(kName) + "=" + value, "Z=1"},
                    .cwd = {}});
  EXPECT_TRUE(pid);
  return pid ? *pid : -1;
}

void finish(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(ProcessTagScanOf, FindsTheWholeValueOnly) {
  const auto value = unique_value("whole");
  const pid_t right = start(value);
  const pid_t longer = start(value + "0");
  const pid_t other = start("x" + value);
  // A process in the middle of its exec counts as unsettled, and the scan is repeated.
  auto scan = scan_process_tag(kName, value);
  while (scan && scan->found.empty() && scan->unsettled > 0) scan = scan_process_tag(kName, value);
  ASSERT_TRUE(scan);
  ASSERT_EQ(scan->found.size(), 1U);
  EXPECT_EQ(scan->found.front().pid, right);
  EXPECT_EQ(scan->found.front(), *identify(right));
  for (const pid_t pid : {right, longer, other}) finish(pid);
}

TEST(ProcessTagScanOf, NameMustBeTheWholeNameToo) {
  const auto value = unique_value("name");
  const auto pid = spawn({.path = stub(),
                          .argv = {stub(), "--block"},
                          .env = {"NOT_" + std::string(kName) + "=" + value,
                                  "TEXT=" + std::string(kName) + "=" + value},
                          .cwd = {}});
  ASSERT_TRUE(pid);
  EXPECT_TRUE(scan_process_tag(kName, value)->found.empty());
  finish(*pid);
}

TEST(ProcessTagScanOf, AZombieIsNotThere) {
  const auto value = unique_value("zombie");
  const pid_t pid = start(value);
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(scan_process_tag(kName, value)->found.empty());
  finish(pid);
}

TEST(ProcessTagScanOf, AProcessThatExecsWithoutEndIsNeverTakenForClean) {
  // In the middle of an exec, the environment reads as empty. A scan at that moment must report
  // this.
  std::string pattern = (fs::temp_directory_path() / "process_tag.XXXXXX").string();
  const fs::path dir = ::mkdtemp(pattern.data());
  std::ofstream(dir / "again") << "#!/bin/sh\nexec \"$0\"\n";
  fs::permissions(dir / "again", fs::perms::owner_all);
  const auto value = unique_value("exec");
  const auto pid = spawn({.path = (dir / "again").string(),
                          .argv = {"again"},
                          .env = {std::string(kName) + "=" + value},
                          .cwd = {}});
  ASSERT_TRUE(pid);
  for (int i = 0; i < 300; ++i) {
    const auto scan = scan_process_tag(kName, value);
    ASSERT_TRUE(scan);
    ASSERT_TRUE(!scan->found.empty() || scan->unsettled > 0) << "missed in scan " << i;
  }
  const auto killed = sweep_process_tag(kName, value, kPatienceMs);
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 1U);
  ::waitpid(*pid, nullptr, 0);
  fs::remove_all(dir);
}

// Regression: a job had a low limit of descriptors, or an agent had used up its own. Then a run was
// reported as swept although its processes lived on.
TEST(ProcessTagScanOf, WithoutDescriptorsNothingIsKnownAndNothingIsClean) {
  const auto value = unique_value("descriptors");
  const pid_t pid = start(value);
  auto sweep = ProcessTagSweep::start(kName, value);
  ASSERT_TRUE(sweep);
  // none for /proc itself; one for it and none for an environment
  for (const rlim_t free : {0, 1}) {
    const FewDescriptors few(free);
    const auto scan = scan_process_tag(kName, value);
    ASSERT_FALSE(scan) << "with " << free;
    EXPECT_NE(scan.error().message.find("Too many open files"), std::string::npos)
        << scan.error().message;
    EXPECT_FALSE(sweep->step());
  }
  const auto killed = sweep_process_tag(kName, value, kPatienceMs);
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 1U);
  finish(pid);
}

TEST(ProcessTagScanOf, WhatIsOlderThanTheProcessTagKeepsNobodyWaiting) {
  const auto value = unique_value("older");
  const Stranger stranger;
  const pid_t pid = start(value);
  const auto since = identify(pid)->start_time;
  EXPECT_GT(scan_process_tag(kName, value)->unsettled, 0U) << "it might carry it";
  auto sweep = ProcessTagSweep::start(kName, value, since);
  ASSERT_TRUE(sweep);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  auto progress = sweep->step();
  while (progress && *progress == ProcessTagSweep::Progress::Waiting &&
         std::chrono::steady_clock::now() < until) {
    pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kPatienceMs);
    progress = sweep->step();
  }
  ASSERT_TRUE(progress);
  EXPECT_EQ(*progress, ProcessTagSweep::Progress::Done);
  EXPECT_EQ(sweep->killed(), 1U);
  finish(pid);
}

TEST(Sweep, KillsWhatLeftSessionGroupAndParent) {
  const auto value = unique_value("daemons");
  const pid_t pid = start(value, {"--children", "3"});
  // They are complete when a scan finds the stub and three processes in sessions of their own. The
  // processes that made the sessions must be gone.
  const auto all_there = [&] {
    const auto scan = scan_process_tag(kName, value);
    return scan && scan->found.size() == 4 && scan->sessions.size() == 4 &&
           std::ranges::none_of(
               scan->found, [&](const ProcessId& one) { return scan->sessions.contains(one.pid); });
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!all_there() && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, 1);
  EXPECT_TRUE(all_there());
  finish(pid);
  const auto killed = sweep_process_tag(kName, value, kPatienceMs);
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 3U);
  EXPECT_TRUE(scan_process_tag(kName, value)->found.empty());
}

TEST(Sweep, EndsAGrowingFamily) {
  // Each generation starts the next in a session of its own and ends: the pids stay ahead of a
  // scan.
  const auto value = unique_value("family");
  const auto pid = spawn(
      {.path = "/bin/sh",
       .argv =
           {"sh", "-c",
            "f() { setsid sh -c \"$1\" sh \"$1\" & }; f 'setsid sh -c \"$1\" sh \"$1\" & exec " +
                stub() + " --block'; f '" + stub() + " --block & exec " + stub() +
                " --block'; wait"},
       .env = {"PATH=/usr/bin:/bin", std::string(kName) + "=" + value},
       .cwd = {}});
  ASSERT_TRUE(pid);
  const auto killed = sweep_process_tag(kName, value, kPatienceMs);
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_TRUE(scan_process_tag(kName, value)->found.empty());
  ::waitpid(*pid, nullptr, 0);
}

TEST(Sweep, WhatThrewItsEnvironmentAwayGoesByTheSessionOfItsRank) {
  const auto value = unique_value("emptied");
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
  const auto leader = spawn(
      {.path = "/bin/sh",
       .argv = {"sh", "-c", "env -i " + stub() + " --block & echo $!; exec " + stub() + " --block"},
       .env = {"PATH=/usr/bin:/bin", std::string(kName) + "=" + value},
       .cwd = {},
       .out_fd = ready[1],
       .new_session = true});
  ASSERT_TRUE(leader);
  ::close(ready[1]);
  char text[32] = {};
  ASSERT_GT(::read(ready[0], text, sizeof text - 1), 0);
  ::close(ready[0]);
  const auto daemon = static_cast<pid_t>(std::strtol(text, nullptr, 10));
  const auto id = identify(daemon);
  ASSERT_TRUE(id);
  auto pidfd = Pidfd::open(*id);
  ASSERT_TRUE(pidfd);
  const auto first = identify(*leader);
  ASSERT_TRUE(first);
  auto sweep = ProcessTagSweep::start(kName, value, first->start_time,
                                      Family{.leaders = {*first}, .since = first->start_time});
  ASSERT_TRUE(sweep);
  for (auto progress = sweep->step(); *progress != ProcessTagSweep::Progress::Done;
       progress = sweep->step()) {
    ASSERT_TRUE(progress);
    ::waitpid(*leader, nullptr, WNOHANG);
    pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, kPatienceMs), 1);
  }
  pollfd gone{.fd = pidfd->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&gone, 1, 0), 1) << "said to be swept, and process " << daemon << " lives";
  EXPECT_EQ(sweep->killed(), 2U);
  ::waitpid(*leader, nullptr, 0);
}

// The leader of a session has ended and was reaped. Two members are left: one with this
// environment, one with none (env -i).
struct LeaderlessSession {
  ProcessId leader, carrier, emptied;
};
LeaderlessSession leaderless(const std::string& variable) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
  const auto leader = spawn(
      {.path = "/bin/sh",
       .argv = {"sh", "-c", stub() + " --block & C=$!; env -i " + stub() + " --block & echo $C $!"},
       .env = {"PATH=/usr/bin:/bin", variable},
       .cwd = {},
       .out_fd = ready[1],
       .new_session = true});
  EXPECT_TRUE(leader);
  LeaderlessSession session{.leader = *identify(*leader), .carrier = {}, .emptied = {}};
  ::close(ready[1]);
  char text[64] = {};
  EXPECT_GT(::read(ready[0], text, sizeof text - 1), 0);
  ::close(ready[0]);
  char* rest = text;
  session.carrier = *identify(static_cast<pid_t>(std::strtol(rest, &rest, 10)));
  session.emptied = *identify(static_cast<pid_t>(std::strtol(rest, &rest, 10)));
  EXPECT_EQ(::waitpid(*leader, nullptr, 0), *leader);
  return session;
}

bool swept(const std::string& value, const LeaderlessSession& session, std::uint32_t killed) {
  auto sweep = ProcessTagSweep::start(
      kName, value, session.leader.start_time,
      Family{.leaders = {session.leader}, .since = session.leader.start_time});
  EXPECT_TRUE(sweep);
  for (auto progress = sweep->step(); progress && *progress != ProcessTagSweep::Progress::Done;
       progress = sweep->step()) {
    pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kPatienceMs) != 1) return false;
  }
  EXPECT_EQ(sweep->killed(), killed);
  return true;
}

void end(const ProcessId& process) {
  const auto pidfd = Pidfd::open(process);
  if (!pidfd) return;
  (void)pidfd->signal(SIGKILL);
  pollfd gone{.fd = pidfd->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&gone, 1, kPatienceMs), 1);
}

// A rank's pid was reused for the leader of another program's session, and that leader is gone,
// too: the daemon that it left belongs to the other program.
TEST(Sweep, ASessionWithoutItsLeaderMayBeAStrangers) {
  const auto session = leaderless("STRANGER=1");
  EXPECT_TRUE(swept(unique_value("leaderless"), session, 0));
  EXPECT_TRUE(alive(session.carrier));
  EXPECT_TRUE(alive(session.emptied));
  end(session.carrier);
  end(session.emptied);
}

TEST(Sweep, ASessionWithACarrierIsTheRuns) {
  const auto value = unique_value("led");
  const auto session = leaderless(std::string(kName) + "=" + value);
  EXPECT_TRUE(swept(value, session, 2));
  EXPECT_FALSE(alive(session.emptied));
  end(session.carrier);
  end(session.emptied);
}

TEST(Sweep, NothingThereIsDoneAtOnce) {
  auto sweep = ProcessTagSweep::start(kName, unique_value("nothing"));
  ASSERT_TRUE(sweep);
  for (int i = 0; i < 100; ++i) {  // another process's exec may cause another scan
    const auto progress = sweep->step();
    ASSERT_TRUE(progress);
    if (*progress == ProcessTagSweep::Progress::Done) return;
    pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, kPatienceMs), 1);
  }
  FAIL() << "never done";
}

}  // namespace
}  // namespace muster::process
