// How ranks begin, and who may start them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "common/process/cpu_list.h"
#include "tests/unit/worker/run_under_test.h"
#include "worker/process_start.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using rundir::v1::StopRequested;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Environment, RankOverCommonProcessTagOverBoth) {
  rundir::v1::Launch launch;
  for (const char* variable : {"A=1", "B=2", "A=3", "MUSTER_PROCESS_TAG=forged"})
    launch.add_env(variable);
  rundir::v1::RankLaunch& rank = *launch.add_ranks();
  for (const char* variable : {"B=rank", "BB=5", "EMPTY="}) rank.add_env(variable);
  const StartContext context{.launch = &launch, .process_tag = "MUSTER_PROCESS_TAG=true"};
  std::vector<std::string> texts;
  for (const char* variable : environment_of(context, {.kind = ProcessKind::Rank}))
    texts.emplace_back(variable);
  EXPECT_THAT(texts, testing::UnorderedElementsAre("A=3", "B=rank", "BB=5",
                                                   "EMPTY=", "MUSTER_PROCESS_TAG=true"));
}

TEST(Start, EventsTellTheWholeStoryInOrder) {
  RunUnderTest test;
  test.shell("exit 0");
  test.shell("exit 3");
  test.shell("kill -SEGV $$");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  const auto story = kinds(events);
  EXPECT_EQ(story.substr(0, 3), "RRR");
  EXPECT_EQ(story.back(), 'W');
  EXPECT_EQ(std::ranges::count(story, 'S'), 1);
  EXPECT_EQ(std::ranges::count(story, 'E'), 3);
  EXPECT_EQ(story.size(), 8U) << story;
  ASSERT_TRUE(exit_of(events, 0) && exit_of(events, 1) && exit_of(events, 2));
  EXPECT_EQ(exit_of(events, 0)->code(), 0);
  EXPECT_EQ(exit_of(events, 1)->code(), 3);
  EXPECT_EQ(exit_of(events, 1)->signal(), 0);
  EXPECT_EQ(exit_of(events, 2)->code(), -1);
  EXPECT_EQ(exit_of(events, 2)->signal(), SIGSEGV);
  for (const auto& event : events) {
    EXPECT_EQ(event.boot_id(), test.boot.str());
    EXPECT_GT(event.wall_ns(), 0);
    EXPECT_FALSE(event.has_exited() && event.exited().stop_requested());
  }
  EXPECT_NE(first(events, Event::kSwept), nullptr);
  EXPECT_FALSE(fs::exists(test.run.worker_log())) << "nothing to complain about";
}

TEST(Start, ARankGetsItsEnvironmentDirectoryLogAndNothingElse) {
  RunUnderTest test;
  test.launch.add_env("COMMON=c");
  test.shell(
      "env | grep -v '^_=' | sort; pwd; readlink /proc/self/fd/0; ls /proc/self/fd > fds; tr '\\n' "
      "' ' < fds; grep SigBlk /proc/self/status; umask; echo err >&2");
  std::ofstream(test.run.rank_log(0)) << "kept\n";
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(test.log(0), "kept\nCOMMON=c\nMUSTER_PROCESS_TAG=" + test.launch.process_tag() +
                             "\nPATH=/usr/bin:/bin\nPWD=" + test.dir.string() +
                             "\nRANK=0\nWORLD_SIZE=1000\n" + test.dir.string() +
                             "\n/dev/null\n0 1 2 3 SigBlk:\t0000000000000000\n0022\nerr\n");
}

TEST(Start, ARankRunsOnItsOwnProcessorsAndKnowsThem) {
  const auto allowed = process::allowed_cpus();
  ASSERT_TRUE(allowed);
  const std::string last = process::cpu_list_text({allowed->back()}),
                    all = process::cpu_list_text(*allowed);
  const std::string tell =
      "echo \"$MUSTER_CPUS\"; sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status";
  RunUnderTest test;
  test.shell(tell).set_cpus(last);
  test.shell(tell);
  test.shell(tell).set_cpus("8191");  // these CPUs do not exist here: the cpuset has changed since
  test.shell(tell).set_cpus("0-x");   // an invalid record
  auto& bound = test.shell(tell);
  bound.set_cpus(last);
  bound.add_env("CPU_AFFINITY_CONF=1");  // as the setup may have left it
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(test.log(0), last + "\n" + last + "\n");
  for (const std::uint32_t rank : {1U, 2U, 3U, 4U})
    EXPECT_EQ(test.log(rank), "\n" + all + "\n") << rank;
}

TEST(Start, LogIsPrivateAndAppended) {
  RunUnderTest test;
  test.shell("grep flags /proc/self/fdinfo/1");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(fs::status(test.run.rank_log(0)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(test.log(0), HasSubstr("02001\n")) << "O_APPEND | O_WRONLY";
}

TEST(Start, EachRankIsASessionOfItsOwn) {
  RunUnderTest test;
  for (int i = 0; i < 2; ++i) test.shell("ps -o pid=,pgid=,sid= -p $$");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  for (const std::uint32_t rank : {0U, 1U}) {
    std::istringstream line(test.log(rank));
    pid_t pid = 0, group = 0, session = 0;
    line >> pid >> group >> session;
    EXPECT_EQ(pid, pid_of(test.events(), rank));
    EXPECT_EQ(group, pid);
    EXPECT_EQ(session, pid);
  }
}

TEST(Start, OfTwoWorkersOneStarts) {
  for (int round = 0; round < 10; ++round) {
    RunUnderTest test;
    test.stub({"--block"});
    test.start();
    test.spawn_worker();
    ASSERT_TRUE(test.wait_for(Event::kStarted));
    const auto claim = rundir::read_claim(test.run);
    ASSERT_TRUE(claim && *claim);
    const auto winner = static_cast<pid_t>((*claim)->pid());
    const auto loser = test.workers()[0] == winner ? test.workers()[1] : test.workers()[0];
    ASSERT_NE(winner, loser);
    EXPECT_EQ((*claim)->boot_id(), test.boot.str());
    EXPECT_TRUE(process::alive({.pid = winner, .start_time = (*claim)->start_time()}));
    const auto pidfd = process::Pidfd::open_child(loser);
    ASSERT_TRUE(pidfd);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(loser), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 0);
    EXPECT_EQ(kinds(test.events()), "RS");
    EXPECT_EQ(test.carriers(), 1U);
  }
}

TEST(Start, ARunThatTheAgentClaimedNeverStarts) {
  RunUnderTest test;
  test.stub({"--block"});
  rundir::v1::Claim never;
  never.set_boot_id(test.boot.str());
  ASSERT_TRUE(*rundir::write_claim(test.run, never));
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_FALSE(fs::exists(test.run.events()));
  EXPECT_EQ(test.carriers(), 0U);
}

TEST(Start, AClaimIsNotUsedTwice) {
  RunUnderTest test;
  test.shell("echo once");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  test.spawn_worker();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(test.log(0), "once\n");
}

void expect_failed_start(RunUnderTest& test, int error, const std::string& text) {
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  const auto events = test.events();
  const auto* failed = first(events, Event::kStartFailed);
  ASSERT_NE(failed, nullptr) << kinds(events);
  EXPECT_EQ(failed->start_failed().error(), error);
  EXPECT_EQ(failed->start_failed().text(), text);
  ASSERT_NE(first(events, Event::kStopRequested), nullptr);
  EXPECT_EQ(first(events, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_START_FAILED);
  EXPECT_EQ(first(events, Event::kStarted), nullptr);
  EXPECT_EQ(kinds(events).back(), 'W');
  for (int i = 0; i < test.launch.ranks_size(); ++i)
    EXPECT_NE(exit_of(events, static_cast<std::uint32_t>(i)), nullptr) << "no exit of rank " << i;
  EXPECT_EQ(test.carriers(), 0U);
}

TEST(StartFailed, MissingProgramStopsTheOthersAtOnce) {
  RunUnderTest test;
  test.stub({"--block", "--ignore-sigterm"});
  test.add({"/no/such/python", "train.py"});
  test.stub({"--block"});
  expect_failed_start(test, ENOENT, "executing '/no/such/python': No such file or directory");
}

TEST(StartFailed, NoTwoStoriesOfOneFailure) {
  RunUnderTest test;
  for (int i = 0; i < 8; ++i) test.add({"/no/such/python"});
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "RRRRRRRRFQEEEEEEEEW");
}

TEST(StartFailed, MissingDirectory) {
  RunUnderTest test;
  test.stub({"--block"}).set_cwd("/no/such/dir");
  expect_failed_start(test, ENOENT, "entering '/no/such/dir': No such file or directory");
}

TEST(StartFailed, LogThatCannotBeOpened) {
  RunUnderTest test;
  test.stub({"--block"}).set_log("/no/such/dir/log");
  expect_failed_start(test, ENOENT, "opening log '/no/such/dir/log': No such file or directory");
}

// A link on the way to a log that is not in the run directory leads nowhere.
TEST(StartFailed, LogBehindALink) {
  RunUnderTest test;
  fs::create_directory(test.dir / "victim");
  std::ofstream(test.dir / "victim" / "log") << "kept\n";
  fs::create_directory_symlink(test.dir / "victim", test.dir / "link");
  const std::string log = (test.dir / "link" / "log").string();
  test.stub({"--block"}).set_log(log);
  expect_failed_start(test, ELOOP, "opening log '" + log + "': Too many levels of symbolic links");
  EXPECT_EQ(fs::file_size(test.dir / "victim" / "log"), 5U);
}

TEST(StartFailed, ScriptWithoutInterpreter) {
  RunUnderTest test;
  const auto script = test.dir / "script";
  std::ofstream(script) << "echo hello\n";
  fs::permissions(script, fs::perms::owner_all);
  test.add({script.string()});
  expect_failed_start(test, ENOEXEC,
                      "executing '" + script.string() +
                          "': Exec format error; a script needs a first line '#!INTERPRETER'");
}

TEST(StartFailed, ScriptWhoseInterpreterIsNotThere) {
  RunUnderTest test;
  const auto script = test.dir / "script";
  std::ofstream(script) << "#!/no/such/python\necho hello\n";
  fs::permissions(script, fs::perms::owner_all);
  test.add({script.string()});
  expect_failed_start(test, ENOENT,
                      "executing '" + script.string() +
                          "': No such file or directory; the file is there: the interpreter that "
                          "its first line names is not");
}

TEST(StartFailed, LaunchOfAnotherBoot) {
  RunUnderTest test;
  test.stub({"--block"});
  test.launch.set_boot_id("00000000-0000-0000-0000-000000000000");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "FQW");
  EXPECT_THAT(first(test.events(), Event::kStartFailed)->start_failed().text(),
              HasSubstr("'00000000-0000-0000-0000-000000000000'"));
}

TEST(StartFailed, LaunchRecordMissingOrDamaged) {
  RunUnderTest missing;
  missing.lease_for(std::chrono::minutes(1));
  missing.spawn_worker();
  EXPECT_EQ(missing.wait_worker(), 0);
  EXPECT_EQ(kinds(missing.events()), "FQW");
  RunUnderTest damaged;
  std::ofstream(damaged.run.launch()) << "not a frame at all";
  damaged.spawn_worker();
  EXPECT_EQ(damaged.wait_worker(), 0);
  EXPECT_EQ(kinds(damaged.events()), "FQW");
}

TEST(Start, ARankMayEndBeforeAnotherHasBeenExecd) {
  // Rank 1 hangs while it opens its log, a FIFO that nobody reads. The worker must neither hang
  // with it nor report that the attempt started.
  RunUnderTest test;
  test.shell("exit 7");
  const auto fifo = (test.dir / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  test.shell("exit 0").set_log(fifo);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kExited));
  EXPECT_EQ(kinds(test.events()), "RRE");
  const std::ifstream reader(fifo);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()), "RRESEW");
}

TEST(Start, AStopReachesARankThatHangsBeforeItsExec) {
  RunUnderTest test;
  test.launch.set_stop_grace_ms(200);
  const auto fifo = (test.dir / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  test.stub({"--block"}).set_log(fifo);
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kRankStarted));
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(exit_of(test.events(), 0)->signal(), SIGKILL);
  EXPECT_EQ(kinds(test.events()).back(), 'W');
}

TEST(Start, LimitsAreTheRanks) {
  RunUnderTest test;
  test.launch.set_nofile(77);
  test.shell("ulimit -n");
  test.start();
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(test.log(0), "77\n");
}

// Regression: a worker with as few descriptors as its job asked for could not scan for what its
// ranks leave.
TEST(Start, FewDescriptorsAreTheRanksAndNotTheWorkers) {
  RunUnderTest test;
  test.launch.set_nofile(4);
  test.stub({"--block"});
  test.start();
  ASSERT_TRUE(test.wait_for(Event::kStarted));
  rlimit own{}, workers{}, ranks{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  ASSERT_EQ(::prlimit(test.workers().back(), RLIMIT_NOFILE, nullptr, &workers), 0);
  ASSERT_EQ(::prlimit(pid_of(test.events(), 0), RLIMIT_NOFILE, nullptr, &ranks), 0);
  EXPECT_EQ(workers.rlim_cur, own.rlim_cur);
  EXPECT_EQ(ranks.rlim_cur, 4U);
  EXPECT_EQ(ranks.rlim_max, 4U);
  test.signal(SIGTERM);
  EXPECT_EQ(test.wait_worker(), 0);
  EXPECT_EQ(kinds(test.events()).back(), 'W');
}

TEST(Start, AnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes somebody else";
  RunUnderTest test;
  test.launch.set_set_user(true);
  test.launch.set_uid(65534);
  test.launch.set_gid(65533);
  test.launch.add_groups(65532);
  test.shell(
      "id -u; id -g; id -G; grep CapEff /proc/self/status; echo again >> /dev/stderr; touch "
      "started; exec " +
      RunUnderTest::program("stub_trainer").string() + " --block");
  fs::permissions(test.dir, static_cast<fs::perms>(0777));
  test.start();
  ASSERT_TRUE(test.wait_for_file(test.dir / "started"));
  EXPECT_THAT(test.log(0), testing::MatchesRegex(
                               "65534\n65533\n65533 65532\nCapEff:\t0000000000000000\nagain\n"));
  // A change of user disables the parent-death signal, so it must have been set again.
  const auto rank = process::Pidfd::open(*process::identify(pid_of(test.events(), 0)));
  ASSERT_TRUE(rank);
  test.signal(SIGKILL);
  pollfd wait{.fd = rank->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, kPatienceMs), 1);
}

}  // namespace
}  // namespace muster::worker
