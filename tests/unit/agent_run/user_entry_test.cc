// Which user a start finds, and what that costs: getent is run once for the agent's own user.
#include "agent/launch/user_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "common/io/unique_fd.h"
#include "tests/unit/name_service/fake_host.h"

namespace muster::agent {
namespace {

using Ids = std::vector<std::uint32_t>;
using name_service::FakeHost;

// A getent that hangs at the own user, until the test lets one more of them go on, to a failure.
class GatedHost : public FakeHost {
 public:
  explicit GatedHost(const std::string& others) {
    for (const char* name : {"begun", "gate"})
      if (::mkfifo(file(name).c_str(), 0600) != 0) throw std::runtime_error("no pipe");
    // Both ends: neither the test nor a script waits for the other to open a pipe.
    begun_.reset(::open(file("begun").c_str(), O_RDWR | O_CLOEXEC));
    gate_.reset(::open(file("gate").c_str(), O_RDWR | O_CLOEXEC));
    getent(fmt::format("if [ \"$2\" = {} ]; then\n  echo > '{}'\n  read x < '{}'\n  exit 3\nfi\n",
                       ::geteuid(), file("begun"), file("gate")) +
           others);
  }
  void wait_for_one() const {
    char line = 0;
    EXPECT_EQ(::read(begun_.get(), &line, 1), 1);
  }
  void let_go(std::size_t count) const {
    const std::string lines(count, '\n');
    EXPECT_EQ(::write(gate_.get(), lines.data(), count), static_cast<ssize_t>(count));
  }

 private:
  io::UniqueFd begun_, gate_;
};

std::string own_line() { return fmt::format("echo me:x:{}:7::/home/me:/bin/sh", ::geteuid()); }

TEST(UserTable, TheOwnUserCostsOneProgram) {
  const FakeHost host;
  host.getent(own_line());
  UserTable users(host.tables());
  std::vector<std::thread> starts;
  for (int i = 0; i < 8; ++i)
    starts.emplace_back([&] {
      const auto own = users.find("");
      ASSERT_TRUE(own) << own.error().message;
      EXPECT_EQ(own->name, "me");
      EXPECT_EQ(own->home, "/home/me");
      EXPECT_EQ(own->uid, ::geteuid());
      EXPECT_EQ(own->groups.front(), 7U);
    });
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(users.find("me")->uid, ::geteuid()) << "by its name, too";
  EXPECT_EQ(host.asked(), fmt::format("2 passwd {}\n", ::geteuid()));
}

TEST(UserTable, AFailedSearchForTheOwnUserIsRepeated) {
  const FakeHost host;
  host.getent("exit 3");
  UserTable users(host.tables());
  const auto none = users.find("");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(none.error().message,
            fmt::format("looking for the agent's own user {} on this node: getent gave no answer: "
                        "it ended with status 3",
                        ::geteuid()));
  host.getent(own_line());
  EXPECT_EQ(users.find("")->name, "me");
}

// Regression: each of them waited for those before it, 5 s each with a silent directory service.
TEST(UserTable, StartsThatComeMeanwhileShareTheFailure) {
  constexpr std::size_t kOthers = 7;
  const GatedHost host("");
  UserTable users(host.tables());
  const auto find = [&] { EXPECT_EQ(users.find("").error().code, ErrorCode::Unreachable); };
  std::vector<std::jthread> starts;
  starts.emplace_back(find);
  host.wait_for_one();
  std::latch begun(kOthers);
  for (std::size_t i = 0; i < kOthers; ++i)
    starts.emplace_back([&] {
      begun.count_down();
      find();
    });
  begun.wait();
  host.let_go(1 + kOthers);
  starts.clear();
  // One of them may have come to find() late: when the first search had ended.
  const std::string asked = host.asked();
  EXPECT_LE(std::ranges::count(asked, '\n'), static_cast<std::ptrdiff_t>(kOthers)) << asked;
}

// Regression: the search for a named user began with that for the own one.
TEST(UserTable, ANamedUserDoesNotWaitForTheOwnOne) {
  const GatedHost host(
      R"(case "$1" in
passwd) echo ann:x:12345:100::/home/ann:/bin/sh ;;
initgroups) echo ann 200 ;; esac)");
  UserTable users(host.tables());
  std::atomic<bool> own_ended{false};
  std::jthread own([&] {
    EXPECT_FALSE(users.find(""));
    own_ended = true;
  });
  host.wait_for_one();
  const auto ann = users.find("ann");
  EXPECT_FALSE(own_ended);
  host.let_go(1);
  ASSERT_TRUE(ann) << ann.error().message;
  EXPECT_EQ(ann->groups, (Ids{100, 200}));
}

TEST(UserTable, TheOwnUserByItsNameHasTheGroupsOfTheProcess) {
  const FakeHost host;
  host.getent("[ \"$1\" = passwd ] || exit 3\n" + own_line());
  UserTable users(host.tables());
  const auto me = users.find("me");
  ASSERT_TRUE(me) << me.error().message;
  EXPECT_EQ(me->uid, ::geteuid());
  EXPECT_EQ(me->groups.front(), 7U);
  EXPECT_EQ(me->groups, users.find("")->groups);
}

// Regression: runtime.user "0" was the agent's own user where root has no entry.
TEST(UserTable, TheNumberOfTheOwnUserIsNoName) {
  const FakeHost host;
  UserTable users(host.tables());
  ASSERT_TRUE(users.find(""));
  const auto number = users.find(std::to_string(::geteuid()));
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().code, ErrorCode::NotFound);
}

TEST(UserTable, ANumberWithoutANameIsAUser) {
  const FakeHost host;
  UserTable users(host.tables());
  const auto own = users.find("");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->name, std::to_string(::geteuid()));
  EXPECT_EQ(own->home, "/");
  EXPECT_EQ(own->gid, ::getegid());
}

TEST(UserTable, AnotherUserIsAskedForEachTime) {
  const FakeHost host;
  const std::string passwd =
      R"(case "$1" in
passwd) [ "$2" = ann ] || exit 2; echo ann:x:12345:100::/home/ann:/bin/sh ;;
initgroups) echo )";
  host.getent(passwd + "ann 200;; esac");
  UserTable users(host.tables());
  EXPECT_EQ(users.find("ann")->groups, (Ids{100, 200}));
  host.getent(passwd + "ann 300;; esac");
  EXPECT_EQ(users.find("ann")->groups, (Ids{100, 300})) << "the next start sees the change";
  const auto none = users.find("bob");
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
  EXPECT_EQ(none.error().message,
            "there is no user 'bob' on this node; create it here, or change runtime.user");
  host.getent("exit 3");
  const auto silent = users.find("ann");
  EXPECT_EQ(silent.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(silent.error().message,
            "looking for user 'ann' on this node: getent gave no answer: it ended with status 3");
}

}  // namespace
}  // namespace muster::agent
