// How ranks end: by themselves, by order, by the lease, with their worker; and that nothing is
// left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/process/cgroup.h"
#include "common/process/process_tag.h"
#include "common/process/spawn.h"
#include "tests/unit/process/stranger.h"
#include "tests/unit/worker/run_under_test.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using rundir::v1::StopRequested;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::string stub_path() { return RunUnderTest::program("stub_trainer").string(); }

bool wait_end(const process::Pidfd& pidfd) {
  pollfd wait{.fd = pidfd.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, kPatienceMs) == 1;
}

void wait_until(BootTime time) {
  const io::UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
  const auto ns = time.time_since_epoch().count();
  const itimerspec spec{.it_interval = {},
                        .it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}};
  ::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  std::uint64_t ticks = 0;
  ASSERT_EQ(::read(timer.get(), &ticks, sizeof ticks), static_cast<ssize_t>(sizeof ticks));
}

milliseconds between(const Event& from, const Event& to) {
  return std::chrono::duration_cast<milliseconds>(Duration(to.boot_ns() - from.boot_ns()));
}

TEST(Stop, AskedIsWrittenFirstAndTermEndsTheRanks) {
  RunUnderTest test;
  for (int i = 0; i < 4; ++i) test.stub({"--block"});
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  EXPECT_EQ(kinds(events), "RRRRSQEEEEW");
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(), StopRequested::WHY_ASKED);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(exit_of(events, rank)->signal(), SIGTERM);
    EXPECT_TRUE(exit_of(events, rank)->stop_requested());
  }
  EXPECT_LT(between(*first(events, Event::kStopRequested), events.back()), milliseconds(5000))
      << "the grace of 10 s was waited for";
}

TEST(Stop, WhoIgnoresTermIsKilledAfterTheGrace) {
  RunUnderTest test;
  test.launch.set_stop_grace_ms(300);
  test.stub({"--block", "--ignore-sigterm", "--stamp", (test.dir / "none").string()});
  test.shell("trap '' TERM; : > ready; exec " + stub_path() + " --block");
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  ASSERT_NE(exit_of(events, 1), nullptr);
  EXPECT_EQ(exit_of(events, 1)->signal(), SIGKILL);
  EXPECT_TRUE(exit_of(events, 1)->stop_requested());
  EXPECT_GE(between(*first(events, Event::kStopRequested), events.back()), milliseconds(300));
}

// Regression: rank 0 was killed from outside, and the end of a peer that failed because of it was
// noticed first. The stop that followed counted as the reason of rank 0's end, 360 ms into a grace
// of 10 s.
TEST(Stop, AKillThatIsNotMustersIsDistinguished) {
  RunUnderTest test;
  test.launch.set_stop_grace_ms(3000);
  for (const char* ready : {"ready0", "ready1", "ready2"})
    test.shell(std::string("trap '' TERM; : > ") + ready + "; exec " + stub_path() + " --block");
  test.start();
  for (const char* ready : {"ready0", "ready1", "ready2"})
    ASSERT_TRUE(test.wait_for_file(test.dir / ready));
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_EQ(::kill(pid_of(test.events(), 2), SIGKILL), 0);
  ASSERT_TRUE(test.wait_for(Event::kExited));
  test.signal(SIGTERM);
  ASSERT_TRUE(test.wait_for(Event::kStopRequested));
  ASSERT_EQ(::kill(pid_of(test.events(), 0), SIGKILL), 0);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  EXPECT_TRUE(exit_of(events, 0)->stop_requested());
  EXPECT_TRUE(exit_of(events, 0)->killed_unasked());
  EXPECT_TRUE(exit_of(events, 1)->stop_requested());
  EXPECT_EQ(exit_of(events, 1)->signal(), SIGKILL);
  EXPECT_FALSE(exit_of(events, 1)->killed_unasked()) << "that was muster, after the grace";
  EXPECT_FALSE(exit_of(events, 2)->stop_requested());
  EXPECT_FALSE(exit_of(events, 2)->killed_unasked()) << "before the stop it needs no telling";
}

TEST(Stop, AStoppedRankEndsToo) {
  RunUnderTest test;
  test.launch.set_stop_grace_ms(300);
  test.shell("trap '' TERM; : > ready; exec " + stub_path() + " --block");
  test.start();
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  ASSERT_EQ(::kill(pid_of(test.events(), 0), SIGSTOP), 0);
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(exit_of(test.events(), 0)->signal(), SIGKILL);
}

TEST(Stop, HangupAndInterruptAreNoOrders) {
  RunUnderTest test;
  test.shell("read line < go; exit 5");
  ASSERT_EQ(::mkfifo((test.dir / "go").c_str(), 0600), 0);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  test.signal(SIGHUP);
  test.signal(SIGINT);
  std::ofstream(test.dir / "go") << "go\n";
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "RSEW");
  EXPECT_EQ(exit_of(test.events(), 0)->code(), 5);
}

TEST(Exit, OneRanksEndStopsNoOther) {
  RunUnderTest test;
  test.stub({"--block"});
  test.stub({"--block"});
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_EQ(::kill(pid_of(test.events(), 0), SIGKILL), 0);
  ASSERT_TRUE(test.wait_for(Event::kExited));
  EXPECT_EQ(kinds(test.events()), "RRSE");
  EXPECT_EQ(test.carriers(), 1U);
  ASSERT_EQ(::kill(pid_of(test.events(), 1), 0), 0);
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  EXPECT_EQ(kinds(events), "RRSEQEW");
  EXPECT_EQ(exit_of(events, 0)->signal(), SIGKILL);
  EXPECT_FALSE(exit_of(events, 0)->stop_requested());
  EXPECT_TRUE(exit_of(events, 1)->stop_requested());
}

TEST(Exit, TheGroupEndsWithItsLeader) {
  RunUnderTest test;
  test.shell(stub_path() + " --block & exit 0");
  test.stub({"--block"});
  test.start();
  // Rank 1 has its environment by then, which may be after rank 0's end.
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_TRUE(test.wait_for(Event::kExited));
  // The group got SIGKILL before its leader was reaped. A member's death is not an event, so this
  // waits for the member itself.
  for (const auto& process : test.living()) {
    if (process.pid == pid_of(test.events(), 1)) continue;
    const auto pidfd = process::Pidfd::open(process);
    EXPECT_TRUE(!pidfd || wait_end(*pidfd));
  }
  EXPECT_EQ(test.carriers(), 1U) << "rank 1 alone";
}

// `carriers`: the rank, and the daemons that have its process tag.
void expect_daemons_swept(RunUnderTest& test, std::size_t carriers) {
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  EXPECT_EQ(test.carriers(), carriers);
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  ASSERT_EQ(kinds(events).back(), 'W');
  EXPECT_EQ(test.carriers(), 0U);
}

// Daemons that left session, group and parent: `setsid sh -c '... &'`. Then the shell itself
// reports "ready": a separate program that makes the file may still run when the stop arrives, and
// would be one more process that is killed.
const std::string kTwoDaemons = "for i in 1 2; do setsid --wait sh -c '" + stub_path() +
                                " --block & exit'; done; : > ready; exec " + stub_path() +
                                " --block";

TEST(Sweep, DaemonsAreFound) {
  RunUnderTest test;
  test.shell(kTwoDaemons);
  test.start();
  expect_daemons_swept(test, 3);
}

TEST(Sweep, DaemonsThatEmptiedTheirEnvironmentAreFoundAsDescendants) {
  RunUnderTest test;
  test.shell("setsid --wait env -i /bin/sh -c '" + stub_path() +
             " --block & echo $! > daemon; exit'; : > ready; exec " + stub_path() + " --block");
  test.start();
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  pid_t daemon = 0;
  std::ifstream(test.dir / "daemon") >> daemon;
  const auto identity = process::identify(daemon);
  ASSERT_TRUE(identity);
  expect_daemons_swept(test, 1);
  EXPECT_FALSE(process::alive(*identity));
}

TEST(Sweep, AlsoWhenRanksEndByThemselves) {
  RunUnderTest test;
  test.shell("setsid --wait sh -c '" + stub_path() + " --block --ignore-sigterm & exit'; exit 0");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "RSEW");
  EXPECT_EQ(test.carriers(), 0U);
}

TEST(Sweep, WhatCarriesTheProcessTagButDescendsFromNobodyHere) {
  // As when a rank asked a daemon to start it.
  RunUnderTest test;
  const auto stranger = process::spawn({.path = stub_path(),
                                        .argv = {"stub", "--block"},
                                        .env = {"MUSTER_PROCESS_TAG=" + test.launch.process_tag()},
                                        .cwd = {}});
  ASSERT_TRUE(stranger);
  test.shell("exit 0");
  test.start();
  int status = 0;
  ASSERT_EQ(::waitpid(*stranger, &status, 0), *stranger);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(test.wait_worker(), 0);
}

TEST(Sweep, OrdinaryUserWithoutCgroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "the whole suite runs as one already";
  RunUnderTest test;
  test.shell(kTwoDaemons);
  test.lease_for(std::chrono::minutes(1));
  // The programs may be below a directory that nobody may enter, so these are copies.
  for (const char* name : {"muster-worker", "stub_trainer"})
    fs::copy_file(RunUnderTest::program(name), test.dir / name);
  const auto line = "chown -R 65534:65534 " + test.dir.string() +
                    " && exec setpriv --reuid 65534 --regid 65534 --clear-groups " +
                    (test.dir / "muster-worker").string() + " " + test.run.root().string();
  auto& argv = *test.launch.mutable_ranks(0)->mutable_argv(2);
  for (std::size_t at = 0; (at = argv.find(stub_path(), at)) != std::string::npos;)
    argv.replace(at, stub_path().size(), (test.dir / "stub_trainer").string());
  ASSERT_TRUE(rundir::write_launch(test.run, test.launch));
  const auto worker = process::spawn(
      {.path = "/bin/sh", .argv = {"sh", "-c", line}, .env = {"PATH=/usr/bin:/bin"}, .cwd = {}});
  ASSERT_TRUE(worker);
  // Records of another user are not believed: this test reads as that user.
  struct AsUser {
    AsUser() { EXPECT_TRUE(::setegid(65534) == 0 && ::seteuid(65534) == 0); }
    ~AsUser() { EXPECT_TRUE(::seteuid(0) == 0 && ::setegid(0) == 0); }
  };
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  const AsUser user;
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  EXPECT_EQ(test.carriers(), 3U);
  ASSERT_EQ(::kill(*worker, SIGTERM), 0);
  int status = -1;
  ASSERT_EQ(::waitpid(*worker, &status, 0), *worker);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kinds(test.events()).back(), 'W');
  EXPECT_EQ(test.carriers(), 0U);
}

TEST(Sweep, Cgroup) {
  const auto own = process::own_cgroup();
  if (!own || ::access((*own).c_str(), W_OK) != 0)
    GTEST_SKIP() << "no cgroup v2 directory that we may write to";
  RunUnderTest test;
  const auto group = *own / ("muster-test-" + test.dir.filename().string());
  test.launch.set_cgroup(group.string());
  test.shell("grep ^0:: /proc/self/cgroup; " + kTwoDaemons);
  test.start();
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  EXPECT_THAT(test.log(0), testing::HasSubstr(group.filename().string()));
  expect_daemons_swept(test, 3);
  EXPECT_FALSE(fs::exists(group));
  EXPECT_FALSE(fs::exists(test.run.worker_log()));
}

TEST(Sweep, AMissingCgroupIsReportedAndDoneWithout) {
  RunUnderTest test;
  test.launch.set_cgroup("/no/such/cgroup");
  test.shell(kTwoDaemons);
  test.start();
  expect_daemons_swept(test, 3);
  EXPECT_TRUE(fs::exists(test.run.worker_log()));
}

// A worker whose lease ends before it has started its ranks starts none.
constexpr milliseconds kLongerThanAStart(1500);

TEST(Lease, ExpiryEndsTheRanks) {
  RunUnderTest test;
  test.stub({"--block"});
  test.lease_for(kLongerThanAStart);
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  EXPECT_EQ(kinds(events), "RSQEW");
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ORPHANED);
  const auto lease = rundir::read_lease(test.run);
  EXPECT_GE(first(events, Event::kStopRequested)->boot_ns(), (*lease)->until_boot_ns());
}

TEST(Lease, RenewedGoesOn) {
  RunUnderTest test;
  test.shell("read line < go; exit 0");
  ASSERT_EQ(::mkfifo((test.dir / "go").c_str(), 0600), 0);
  const auto began = system_clock().now().boot;
  test.lease_for(kLongerThanAStart);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  test.lease_for(std::chrono::minutes(1));
  // the old end passes, and nothing may happen
  wait_until(began + kLongerThanAStart + milliseconds(150));
  EXPECT_EQ(kinds(test.events()), "RS");
  std::ofstream(test.dir / "go") << "go\n";
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "RSEW");
}

TEST(Lease, GoneAtItsEndIsPast) {
  RunUnderTest test;
  test.stub({"--block"});
  test.lease_for(kLongerThanAStart);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  fs::remove(test.run.lease());
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(first(test.events(), Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ORPHANED);
}

TEST(Lease, WithoutOneNothingStarts) {
  RunUnderTest missing;
  missing.stub({"--block"});
  ASSERT_TRUE(rundir::write_launch(missing.run, missing.launch));
  missing.spawn_worker();
  EXPECT_EQ(missing.wait_worker(), 0);
  EXPECT_EQ(kinds(missing.events()), "QW");
  RunUnderTest past;
  past.stub({"--block"});
  past.lease_for(milliseconds(-1));
  past.start();
  EXPECT_EQ(past.wait_worker(), 0);
  EXPECT_EQ(kinds(past.events()), "QW");
}

TEST(WorkerKilled, RanksDieWithItAndTheRestIsFoundByTheProcessTag) {
  RunUnderTest test;
  for (int i = 0; i < 8; ++i) test.stub({"--block", "--ignore-sigterm"});
  test.shell(kTwoDaemons);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  ASSERT_TRUE(test.wait_for_file(test.dir / "ready"));
  std::vector<process::Pidfd> ranks;
  const auto events = test.events();
  for (std::uint32_t rank = 0; rank < 9; ++rank) {
    auto pidfd = process::Pidfd::open(*process::identify(pid_of(events, rank)));
    ASSERT_TRUE(pidfd);
    ranks.push_back(std::move(*pidfd));
  }
  test.signal(SIGKILL);
  for (const auto& rank : ranks) EXPECT_TRUE(wait_end(rank));
  EXPECT_EQ(test.carriers(), 2U) << "the daemons";
  const auto swept = process::sweep_process_tag(rundir::kProcessTagVariable,
                                                test.launch.process_tag(), kPatienceMs);
  ASSERT_TRUE(swept);
  EXPECT_EQ(*swept, 2U);
}

// Regression: a process that hung in its exit, that belonged to another user, and that was older
// than the run, blocked every sweep on the node for ever.
TEST(Sweep, AStrangerWhoIsOlderHoldsNothingUp) {
  RunUnderTest test;
  {
    const process::Stranger stranger;
    test.shell("exit 0");
    test.start();
    EXPECT_TRUE(test.wait_for(Event::kSwept));
  }
  EXPECT_EQ(test.wait_worker(), 0);
}

// Regression: a worker that could not scan reported that nothing was left.
TEST(Sweep, WithoutDescriptorsIsTriedUntilItCanBeTrue) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own look at a virtual table opens a pipe, and takes having no "
                  "descriptor for one for a fault";
#endif
  RunUnderTest test;
  test.stub({"--block"});
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  // Not the worker's child: something that a daemon started for a rank.
  const auto left = process::spawn(
      {.path = stub_path(),
       .argv = {stub_path(), "--block"},
       .env = {std::string(rundir::kProcessTagVariable) + "=" + test.launch.process_tag()},
       .cwd = {}});
  ASSERT_TRUE(left);
  const pid_t worker = test.workers().back();
  const auto open =
      std::distance(fs::directory_iterator("/proc/" + std::to_string(worker) + "/fd"), {});
  rlimit before{};
  ASSERT_EQ(::prlimit(worker, RLIMIT_NOFILE, nullptr, &before), 0);
  // Five more: two for each of the sweep's own parts, one for /proc, none for an environment in it.
  const rlimit lowered{.rlim_cur = static_cast<rlim_t>(open) + 5, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(worker, RLIMIT_NOFILE, &lowered, nullptr), 0);
  test.signal(SIGTERM);
  ASSERT_TRUE(test.wait_for_file(test.run.worker_log())) << "it says that it cannot look";
  EXPECT_EQ(kinds(test.events()).find('W'), std::string::npos);
  EXPECT_EQ(::waitpid(*left, nullptr, WNOHANG), 0) << "it lives";
  ASSERT_EQ(::prlimit(worker, RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()).back(), 'W');
  int status = 0;
  ASSERT_EQ(::waitpid(*left, &status, 0), *left);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(WorkerKilled, AtAnyMomentOfTheStartNoRankIsLeft) {
  // Killed while it forks: a child between fork and exec must notice that its parent is gone.
  for (int round = 0; round < 30; ++round) {
    RunUnderTest test;
    for (int i = 0; i < 16; ++i) test.stub({"--block"});
    test.start();
    if (round % 3 != 0) {
      ASSERT_TRUE(test.wait_for_file(test.run.claim()));
    }
    if (round % 3 == 2) {
      ASSERT_TRUE(test.wait_for_file(test.run.events()));
    }
    test.signal(SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(test.wait_worker()));
    // Nobody kills here: they must end by themselves. This waits for those that are still dying.
    for (const auto& process : test.living()) {
      const auto pidfd = process::Pidfd::open(process);
      EXPECT_TRUE(!pidfd || wait_end(*pidfd)) << process.pid;
    }
    EXPECT_EQ(test.carriers(), 0U);
  }
}

// Utime and stime, in clock ticks of 10 ms.
std::uint64_t processor_ticks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

// Regression: a worker that had swept and could not report it used 97 % of a processor: what the
// sweep had waited for stayed ready in its epoll for ever.
TEST(DiskFull, AWorkerThatWaitsForRoomDoesNotSpin) {
  RunUnderTest test;
  for (int i = 0; i < 2; ++i)
    test.shell("setsid env -i sleep 1000 & exec " + stub_path() + " --block");
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  const auto rank = process::Pidfd::open(*process::identify(pid_of(test.events(), 0)));
  ASSERT_TRUE(rank);
  const pid_t worker = test.workers().back();
  rlimit old{};
  const rlimit full{.rlim_cur = fs::file_size(test.run.events()), .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(worker, RLIMIT_FSIZE, &full, &old), 0);
  test.signal(SIGTERM);
  EXPECT_TRUE(wait_end(*rank));
  const auto before = processor_ticks(worker);
  wait_until(system_clock().now().boot + milliseconds(1500));
  EXPECT_LT(processor_ticks(worker) - before, 50U) << "of 150";
  ASSERT_EQ(::prlimit(worker, RLIMIT_FSIZE, &old, nullptr), 0);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()).back(), 'W');
}

TEST(DiskFull, NoExitIsLost) {
  RunUnderTest test;
  for (int i = 0; i < 3; ++i) test.stub({"--block"});
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  const auto before = test.events();
  // A limit on the worker's file size acts like a full disk.
  rlimit old{};
  const rlimit full{.rlim_cur = fs::file_size(test.run.events()) + 10, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(test.workers().back(), RLIMIT_FSIZE, &full, &old), 0);
  ASSERT_EQ(::kill(pid_of(before, 1), SIGKILL), 0);
  ASSERT_TRUE(test.wait_for_file(test.run.worker_log())) << "it says that it cannot write";
  EXPECT_EQ(kinds(test.events()), "RRRS");
  test.signal(SIGTERM);  // a stop works without a disk
  const auto rank = process::Pidfd::open(*process::identify(pid_of(before, 0)));
  if (rank) {
    EXPECT_TRUE(wait_end(*rank));
  }
  ASSERT_EQ(::prlimit(test.workers().back(), RLIMIT_FSIZE, &old, nullptr), 0);
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  EXPECT_EQ(kinds(events), "RRRSEQEEW");
  EXPECT_EQ(exit_of(events, 1)->signal(), SIGKILL);
  EXPECT_FALSE(exit_of(events, 1)->stop_requested());
}

}  // namespace
}  // namespace muster::worker
