#include "agent/run/state_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

#include "common/process/identity.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

TEST(StateDir, IdentityIsMadeOnceAndKept) {
  const TempDir dir;
  Identity identity;
  {
    auto state = StateDir::open(dir.path() / "a/b");
    ASSERT_TRUE(state) << state.error().message;
    identity = state->identity();
    EXPECT_EQ(identity.instance.str().size(), 32U);
    identity.cluster = ClusterId("c-1");
    identity.lineage = {.generation = 2, .id = "b"};
    identity.highest_epoch = Epoch(4);
    identity.acked = JournalIndex(99);
    ASSERT_TRUE(state->store(identity));
  }
  auto again = StateDir::open(dir.path() / "a/b");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->identity(), identity);
  struct stat info{};
  ASSERT_EQ(::stat((dir.path() / "a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(StateDir, SecondAgentIsRefusedWithASentence) {
  const TempDir dir;
  auto first = StateDir::open(dir.path());
  ASSERT_TRUE(first);
  auto second = StateDir::open(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Conflict);
  EXPECT_NE(second.error().message.find("a second agent on this state directory"),
            std::string::npos);
}

// Regression: a killed agent's child kept the lock until it executed its program. The next agent
// was refused, and nobody started another one.
TEST(StateDir, ALockThatIsLetGoOfAtOnceIsWaitedFor) {
  const TempDir dir;
  ASSERT_TRUE(StateDir::open(dir.path()));
  io::UniqueFd locked(::open((dir.path() / "lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(locked);
  ASSERT_EQ(::flock(locked.get(), LOCK_EX | LOCK_NB), 0);
  auto next = std::async(std::launch::async, [&] { return StateDir::open(dir.path()); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  locked.reset();
  const auto state = next.get();
  EXPECT_TRUE(state) << state.error().message;
}

// Takes the lock in a process of its own. `body` runs there afterwards.
class OwnerProcess {
 public:
  template <class Body>
  OwnerProcess(const std::filesystem::path& dir, Body body) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();  // tidy: allow (no gRPC here, and the test has one thread)
    if (pid_ == 0) {
      const auto state = StateDir::open(dir);
      if (!state) ::_exit(1);
      body([&] { (void)!::write(ready[1], "r", 1); });
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  OwnerProcess(const OwnerProcess&) = delete;
  OwnerProcess& operator=(const OwnerProcess&) = delete;
  ~OwnerProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

TEST(StateDir, ALiveProcessKeepsIt) {
  const TempDir dir;
  const OwnerProcess owner(dir.path(), [](auto ready) {
    ready();
    for (;;) ::pause();
  });
  const auto state = StateDir::open(dir.path());
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::Conflict);
}

// Regression: a killed agent with a thread that hung in the kernel kept the lock until the disk
// answered, and every next agent was refused. Here the first thread ends and another one stays,
// which looks the same from outside.
TEST(StateDir, AProcessOfWhichOnlyAThreadRemainsLosesIt) {
  const TempDir dir;
  const OwnerProcess owner(dir.path(), [](auto ready) {
    const pid_t first = ::getpid();
    std::thread([first, ready] {
      for (;;) {
        const auto stat = process::read_stat(first);
        if (stat && stat->state == 'Z') break;
        ::sched_yield();
      }
      ready();
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);
  });
  const auto next = StateDir::open(dir.path());
  ASSERT_TRUE(next) << next.error().message;
  const auto second = StateDir::open(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Conflict);
}

TEST(StateDir, OfTwoThatTakeOverOneWins) {
  const TempDir dir;
  const OwnerProcess owner(dir.path(), [](auto ready) {
    std::thread([ready] {
      ready();
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);
  });
  const auto take = [&] { return StateDir::open(dir.path()); };
  std::array<std::future<Result<StateDir>>, 4> agents;
  for (auto& agent : agents) agent = std::async(std::launch::async, take);
  std::vector<Result<StateDir>> all;
  for (auto& agent : agents) all.push_back(agent.get());
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& one) { return one.has_value(); }), 1);
}

TEST(StateDir, DamagedIdentityIsNotReplacedSilently) {
  const TempDir dir;
  {
    ASSERT_TRUE(StateDir::open(dir.path()));
  }
  dir.write("identity", "rubbish");
  auto state = StateDir::open(dir.path());
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::DataLoss);
}

}  // namespace
}  // namespace muster::agent
