#include "agent/run/state_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <future>

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
