// Ranks are created inside their cgroup. A rank that joins it before its exec may have forked, or
// been counted, before that. If clone3 or the group are not available, a start must work without
// them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <thread>

#include "common/process/cgroup.h"
#include "tests/unit/worker/run_under_test.h"
#include "worker/process_start.h"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;
using rundir::v1::Event;
using testing::HasSubstr;

class CgroupStart : public testing::Test {
 protected:
  void SetUp() override {
    const auto own = process::own_cgroup();
    if (!own || ::access(own->c_str(), W_OK) != 0)
      GTEST_SKIP() << "no cgroup v2 directory that this user may write to";
    group_ = *own / ("muster-test-" + test_.dir.filename().string());
    std::error_code error;
    if (!fs::create_directory(group_, error))
      GTEST_SKIP() << "making cgroup '" << group_.string() << "': " << error.message();
    test_.launch.set_cgroup(group_.string());
  }
  void TearDown() override {
    if (fs::exists(group_)) {
      EXPECT_TRUE(process::discard_run_group(group_, kPatienceMs));
    }
  }
  void write(const std::string& file, const std::string& word) const {
    std::ofstream(group_ / file) << word << std::flush;
  }
  // Waits until every process in the group is frozen.
  [[nodiscard]] bool wait_frozen() const {
    const io::UniqueFd events(::open((group_ / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
    for (;;) {
      char text[256]{};
      (void)!::pread(events.get(), text, sizeof text - 1, 0);
      if (std::string(text).find("frozen 1") != std::string::npos) return true;
      pollfd item{.fd = events.get(), .events = POLLPRI, .revents = 0};
      if (::poll(&item, 1, kPatienceMs) != 1) return false;
    }
  }
  [[nodiscard]] std::string in_group() const { return "/" + group_.filename().string() + "\n"; }

  RunUnderTest test_;
  fs::path group_;
};

// In a frozen group, a process that is created inside does not reach its first instruction; a
// process that joins by itself has executed some before.
TEST_F(CgroupStart, ARankIsInItsGroupFromItsFirstInstruction) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "under ThreadSanitizer ranks are forked and join: its runtime must see the fork";
#endif
  if (::syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS)
    GTEST_SKIP() << "clone3 is not to be had here: ranks are forked and join";
  write("cgroup.freeze", "1");
  test_.shell("grep ^0:: /proc/self/cgroup");
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kRankStarted));
  ASSERT_TRUE(wait_frozen());
  const pid_t rank = pid_of(test_.events(), 0);
  const auto stat = process::read_stat(rank);
  ASSERT_TRUE(stat);
  EXPECT_NE(stat->session, rank)
      << "its first act, a session of its own, is done: it joined the group later";
  EXPECT_EQ(process::Cgroup::make(group_)->count(), 1U);
  EXPECT_FALSE(fs::exists(test_.run.rank_log(0)));
  write("cgroup.freeze", "0");
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSEW");
  EXPECT_THAT(test_.log(0), HasSubstr(in_group()));
  EXPECT_FALSE(fs::exists(test_.run.worker_log()));
}

// For this thread and what it starts: as on a kernel before 5.3, or in a container whose filter
// does not know clone3.
bool forbid_clone3() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = std::size(code), .filter = code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    return false;
  return ::syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS;
}

TEST_F(CgroupStart, WithoutClone3RanksJoinTheGroup) {
  test_.shell("grep ^0:: /proc/self/cgroup; exit 3");
  test_.shell(
      "grep ^0:: /proc/self/cgroup; setsid --wait env -i /bin/sh -c 'sleep 1000 & exit'; exit 0");
  bool forbidden = false;
  std::thread([&] {
    forbidden = forbid_clone3();
    if (forbidden) test_.start();
  }).join();
  if (!forbidden) GTEST_SKIP() << "this machine lets us install no seccomp filter";
  EXPECT_EQ(test_.wait_worker(), 0);
  const auto events = test_.events();
  ASSERT_NE(exit_of(events, 0), nullptr) << kinds(events);
  EXPECT_EQ(exit_of(events, 0)->code(), 3);
  EXPECT_NE(first(events, Event::kStarted), nullptr);
  EXPECT_EQ(kinds(events).back(), 'W');
  for (const std::uint32_t rank : {0U, 1U}) EXPECT_THAT(test_.log(rank), HasSubstr(in_group()));
  EXPECT_FALSE(fs::exists(group_)) << "empty, and removed";
  EXPECT_FALSE(fs::exists(test_.run.worker_log()));
}

// Somebody removes the group after the worker has made it and before the first fork.
TEST_F(CgroupStart, AGroupThatIsGoneDoesNotFailTheStart) {
  const auto cgroup = process::Cgroup::make(group_);
  ASSERT_TRUE(cgroup);
  EXPECT_FALSE(cgroup->gone());
  ASSERT_EQ(::rmdir(group_.c_str()), 0);
  EXPECT_TRUE(cgroup->gone());
  test_.shell("echo here; exit 4");
  int reports[2];
  ASSERT_EQ(::pipe2(reports, O_CLOEXEC), 0);
  const io::UniqueFd read_end(reports[0]), null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const io::UniqueFd run_dir(::open(test_.run.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  io::UniqueFd write_end(reports[1]);
  const StartContext context{.launch = &test_.launch,
                             .process_tag = "MUSTER_PROCESS_TAG=" + test_.launch.process_tag(),
                             .run_dir = test_.run.root().string(),
                             .run_dir_fd = run_dir.get(),
                             .worker = ::getpid(),
                             .null_fd = null.get(),
                             .report_fd = write_end.get(),
                             .cgroup_dir_fd = cgroup->dir_fd(),
                             .cgroup_procs_fd = cgroup->procs_fd()};
  const auto rank = start_process(context, {.kind = ProcessKind::Rank});
  ASSERT_TRUE(rank) << rank.error().message;
  write_end.reset();
  StartReport report;
  EXPECT_EQ(::read(read_end.get(), &report, sizeof report), 0)
      << "no failure is told: " << describe(report, test_.launch);
  int status = 0;
  ASSERT_EQ(::waitpid(*rank, &status, 0), *rank);
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_EQ(test_.log(0), "here\n");
}

// A group that ranks may not join is different: they would run without its limits.
TEST_F(CgroupStart, AGroupThatRefusesRanksIsAStartFailureWithItsSentence) {
  // A group below a threaded group accepts no process at all.
  write("cgroup.type", "threaded");
  const fs::path below = group_ / "below";
  test_.launch.set_cgroup(below.string());
  test_.shell("exit 0");
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  const auto events = test_.events();
  const auto* failed = first(events, Event::kStartFailed);
  ASSERT_NE(failed, nullptr) << kinds(events);
  EXPECT_EQ(failed->start_failed().text(),
            "joining cgroup '" + below.string() + "': Operation not supported");
  EXPECT_EQ(first(events, Event::kStarted), nullptr);
  EXPECT_EQ(kinds(events).back(), 'W');
  EXPECT_EQ(test_.carriers(), 0U);
}

// Regression: the group was removed under a running rank that somebody had moved elsewhere. The
// worker checked for ever whether the removed group was empty, and never reported "swept".
TEST_F(CgroupStart, AGroupThatIsRemovedLaterIsSweptByTheProcessTag) {
  const std::string stub = RunUnderTest::program("stub_trainer").string();
  test_.shell("setsid --wait sh -c '" + stub + " --block & exit'; : > ready; exec " + stub +
              " --block");
  test_.start();
  ASSERT_TRUE(test_.wait_for(Event::kStarted));
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  std::vector<pid_t> members;
  std::ifstream procs(group_ / "cgroup.procs");
  for (pid_t pid = 0; procs >> pid;) members.push_back(pid);
  ASSERT_EQ(members.size(), 2U);
  for (const pid_t pid : members)
    std::ofstream(group_.parent_path() / "cgroup.procs") << pid << std::flush;
  ASSERT_EQ(::rmdir(group_.c_str()), 0) << "everybody is out";
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(kinds(test_.events()), "RSQEW");
  EXPECT_EQ(test_.carriers(), 0U);
}

}  // namespace
}  // namespace muster::worker
