// Everybody may forge the process tag in his own processes. It counts only with a user of the run:
// a forged one is neither killed nor waited for, unless nobody knows who the run's user is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "common/process/process_tag.h"

namespace muster::process {
namespace {

constexpr const char* kTagName = "MUSTER_PROCESS_TAG";
constexpr uid_t kUser = 65534;

// A process with a tag, of this user or of another one, in a session of its own or in this one's.
class Carrier {
 public:
  Carrier(const std::string& value, uid_t user, bool own_session = true) {
    const std::string variable = std::string(kTagName) + "=" + value;
    std::array<int, 2> gone{};
    EXPECT_EQ(::pipe2(gone.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (own_session) ::setsid();
      if (user != ::getuid() && ::setresuid(user, user, user) != 0) ::_exit(99);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const std::array<const char*, 3> argv{"sleep", "1000", nullptr};
      const std::array<const char*, 2> environment{variable.c_str(), nullptr};
      ::execve("/bin/sleep", const_cast<char**>(argv.data()),
               const_cast<char**>(environment.data()));
      ::_exit(98);
    }
    ::close(gone[1]);
    char byte = 0;
    EXPECT_EQ(::read(gone[0], &byte, 1), 0) << "its exec";
    ::close(gone[0]);
  }
  ~Carrier() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] ProcessId id() const { return *identify(pid_); }
  [[nodiscard]] bool lives() const { return alive(id()); }

 private:
  pid_t pid_ = -1;
};

std::string value_of(const char* test) {
  return std::string("users/") + test + "/" + std::to_string(::getpid());
}

bool finds(const ProcessTagScan& scan, const Carrier& carrier) {
  return std::ranges::find(scan.found, carrier.id()) != scan.found.end();
}

// The sweep's end, or that it waits for this process.
enum class End : std::uint8_t { Done, Waits, Neither };
End sweep(const std::string& value, const TagUsers& users, const Carrier& carrier,
          std::optional<Family> family = std::nullopt) {
  auto sweep = ProcessTagSweep::start(kTagName, value, 0, std::move(family), users);
  EXPECT_TRUE(sweep);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (sweep && std::chrono::steady_clock::now() < until) {
    const auto progress = sweep->step();
    EXPECT_TRUE(progress);
    if (!progress) return End::Neither;
    if (*progress == ProcessTagSweep::Progress::Done) return End::Done;
    if (std::ranges::find(sweep->waits_for(), carrier.pid()) != sweep->waits_for().end())
      return End::Waits;
    pollfd wait{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, 1000);
  }
  return End::Neither;
}

class TagUsersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "only root reads the environment of other users; this is user "
                   << ::geteuid();
  }
};

TEST_F(TagUsersTest, AForgedTagIsNeitherFoundNorKilledNorWaitedFor) {
  const auto value = value_of("forged");
  const Carrier forged(value, kUser), own(value, ::getuid());
  const auto scan = scan_process_tag(kTagName, value);
  ASSERT_TRUE(scan);
  EXPECT_TRUE(finds(*scan, own));
  EXPECT_FALSE(finds(*scan, forged));
  EXPECT_TRUE(scan->closed.empty());
  EXPECT_EQ(sweep(value, {}, forged), End::Done);
  EXPECT_FALSE(own.lives());
  EXPECT_TRUE(forged.lives());
}

TEST_F(TagUsersTest, TheRunsOwnUserCounts) {
  const auto value = value_of("own");
  const Carrier rank(value, kUser), worker(value, ::getuid()), forged(value, kUser - 1);
  EXPECT_EQ(sweep(value, {.run = kUser}, forged), End::Done);
  EXPECT_FALSE(rank.lives());
  EXPECT_FALSE(worker.lives());
  EXPECT_TRUE(forged.lives());
}

TEST_F(TagUsersTest, TheBlockingSweepKnowsTheRunsUser) {
  const auto value = value_of("blocking");
  const Carrier rank(value, kUser), forged(value, kUser - 1);
  const auto killed = sweep_process_tag(kTagName, value, 20'000, {.run = kUser});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, 1U);
  EXPECT_FALSE(rank.lives());
  EXPECT_TRUE(forged.lives());
}

TEST_F(TagUsersTest, WithoutARecordNobodyIsKilledForAnothersTagAndTheSweepWaits) {
  const auto value = value_of("unknown");
  const Carrier maybe(value, kUser), own(value, ::getuid());
  const auto end_of_own = Pidfd::open(own.id());
  ASSERT_TRUE(end_of_own);
  EXPECT_EQ(sweep(value, {.known = false}, maybe), End::Waits);
  pollfd ended{.fd = end_of_own->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
  EXPECT_TRUE(maybe.lives());
}

// Only a descendant of a rank can be in its session.
TEST_F(TagUsersTest, OfASessionOfTheRunItCountsWhoeverItsUserIs) {
  const auto value = value_of("session");
  const Carrier forged(value, kUser);
  const pid_t leader = ::getsid(0);
  const auto session = identify(leader);
  if (!session) GTEST_SKIP() << "the leader of this session is gone";
  const Carrier member(value, kUser, false);
  const Family family{.leaders = {*session}, .since = session->start_time};
  const auto scan = scan_process_tag(kTagName, value, 0, &family);
  ASSERT_TRUE(scan);
  EXPECT_TRUE(finds(*scan, member));
  EXPECT_FALSE(finds(*scan, forged));
}

// A process in the middle of its exec shows no environment. One of another user could not be of the
// run anyway, so one that executes without end does not keep the run from being swept.
TEST_F(TagUsersTest, AStrangerThatExecutesWithoutEndKeepsNobodyWaiting) {
  const auto value = value_of("exec");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kUser, kUser, kUser) != 0) ::_exit(99);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string variable = std::string(kTagName) + "=" + value;
    const std::array<const char*, 4> argv{"sh", "-c", "exec sh -c \"$LOOP\"", nullptr};
    const std::array<const char*, 3> environment{variable.c_str(), "LOOP=exec sh -c \"$LOOP\"",
                                                 nullptr};
    ::execve("/bin/sh", const_cast<char**>(argv.data()), const_cast<char**>(environment.data()));
    ::_exit(98);
  }
  const auto stranger = identify(child);
  ASSERT_TRUE(stranger);
  for (int i = 0; i < 300; ++i) {
    const auto scan = scan_process_tag(kTagName, value, stranger->start_time);
    ASSERT_TRUE(scan);
    // other processes of this machine are in the middle of their exec as well
    ASSERT_TRUE(scan->found.empty() && scan->closed.empty());
  }
  EXPECT_TRUE(alive(*stranger));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace muster::process
