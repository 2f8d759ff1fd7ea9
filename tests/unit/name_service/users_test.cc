// Users and groups: with a getent that answers as the test wants, without one, and of this machine.
// What the C library says is the truth: tests are linked dynamically, unlike the programs.
#include "common/name_service/users.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>

#include <algorithm>

#include "fake_host.h"

namespace muster::name_service {
namespace {

using Ids = std::vector<std::uint32_t>;

constexpr const char* kAnnLine = "ann:x:1000:100:Ann:/home/ann:/bin/bash\n";

TEST(FindUser, AsksTheHost) {
  const FakeHost host;
  host.write("passwd", "ann:x:1:1::/of/the/file:/bin/sh\n");
  host.getent(R"(env | grep -E '^(LC_ALL|LANG|HOME|LD_)' >> ')" + host.file("env") + R"('
case "$1 $2" in
"passwd ann" | "passwd 1000") echo ann:x:1000:100:Ann:/home/ann:/bin/bash ;;
"initgroups ann") echo "ann                   100 200 300" ;;
*) exit 2 ;;
esac)");
  const auto ann = find_user("ann", host.tables());
  ASSERT_TRUE(ann) << ann.error().message;
  EXPECT_EQ(ann->home, "/home/ann") << "and not the file";
  EXPECT_EQ(find_user(1000, host.tables()).value(), *ann);
  EXPECT_EQ(groups_of(*ann, host.tables()).value(), (Ids{100, 200, 300}));
  for (const auto& none : {find_user("bob", host.tables()), find_user(7, host.tables())}) {
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::NotFound) << none.error().message;
  }
  EXPECT_EQ(host.asked(),
            "2 passwd ann\n2 passwd 1000\n2 initgroups ann\n2 passwd bob\n2 passwd 7\n");
  std::string line;
  std::ifstream env(host.file("env"));
  while (std::getline(env, line)) EXPECT_EQ(line, "LC_ALL=C") << "nothing of this process";
}

TEST(FindUser, ANewGroupIsSeenAtTheNextQuestion) {
  const FakeHost host;
  const User ann{.name = "ann", .uid = 1000, .gid = 100, .home = "/", .shell = ""};
  host.getent("echo 'ann 200'");
  EXPECT_EQ(groups_of(ann, host.tables()).value(), (Ids{100, 200}));
  host.getent("echo 'ann 200 300'");
  EXPECT_EQ(groups_of(ann, host.tables()).value(), (Ids{100, 200, 300}));
}

TEST(FindUser, HostileNamesReachNoProgram) {
  const FakeHost host;
  host.getent("echo root:x:0:0::/:");
  host.write("passwd", "0:x:5:5::/zero:\n");
  for (const std::string& name :
       {std::string(), std::string("-s"), std::string("--help"), std::string("a:b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string("a\x7F"), std::string(256, 'a')}) {
    const auto user = find_user(name, host.tables());
    ASSERT_FALSE(user) << name;
    EXPECT_EQ(user.error().code, ErrorCode::NotFound);
  }
  // getent would take these for a uid.
  EXPECT_EQ(find_user("0", host.tables())->uid, 5U) << "a user with this name";
  for (const char* name : {"1000", "+0", " 0", "00"}) EXPECT_FALSE(find_user(name, host.tables()));
  EXPECT_EQ(host.asked(), "");
}

TEST(FindUser, HostileAnswersAreRefused) {
  const FakeHost host;
  for (const std::string answer :
       {"", "ann\n", "ann:x:-1:100::/:\n", "ann:x:1000:100:Ann:/home/ann:/bin/bash\nmore\n",
        "ann:x:1000:100:Ann:/home/\\033[2J:/bin/bash\n"}) {
    host.getent("printf '" + answer + "'");
    for (const auto& user : {find_user("ann", host.tables()), find_user(1000, host.tables())}) {
      ASSERT_FALSE(user) << answer;
      EXPECT_EQ(user.error().code, ErrorCode::Unreachable);
      EXPECT_EQ(user.error().message, "getent printed what is no entry of 'passwd'");
    }
  }
  host.getent(std::string("printf '") + kAnnLine + "'");
  EXPECT_TRUE(find_user("ann", host.tables()));
  EXPECT_FALSE(find_user(0, host.tables())) << "it was asked for another number";
  host.getent("echo 'ann 100 everybody'");
  EXPECT_EQ(
      groups_of(User{.name = "ann", .uid = 1, .gid = 1, .home = "", .shell = ""}, host.tables())
          .error()
          .code,
      ErrorCode::Unreachable);
}

TEST(FindUser, AHostThatGivesNoAnswer) {
  const FakeHost host;
  Tables tables = host.tables();
  host.write("passwd", kAnnLine);  // it is not used instead: nobody knows what it lacks
  host.getent("exit 3");
  EXPECT_EQ(find_user("ann", tables).error().message,
            "getent gave no answer: it ended with status 3");
  host.getent("yes ann:x:1000:100:Ann:/home/ann:/bin/bash");
  EXPECT_EQ(find_user("ann", tables).error().message,
            "getent gave no answer: it printed more than 256 KiB");
  host.getent("exec sleep 1000");
  tables.most = std::chrono::milliseconds(50);
  const auto late = find_user("ann", tables);
  EXPECT_EQ(late.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(late.error().message, "getent gave no answer: it did not end within 50 ms");
}

TEST(FindUser, WithoutGetentTheFilesAreRead) {
  const FakeHost host;
  const Tables tables = host.tables();
  EXPECT_EQ(find_user("ann", tables).error().code, ErrorCode::NotFound) << "no files either";
  host.write("passwd", kAnnLine);
  host.write("group", "users:x:100:ann\ncards:x:200:ann\n");
  const auto ann = find_user("ann", tables);
  ASSERT_TRUE(ann) << ann.error().message;
  EXPECT_EQ(find_user(1000, tables).value(), *ann);
  EXPECT_EQ(groups_of(*ann, tables).value(), (Ids{100, 200}));
  EXPECT_EQ(find_user(0, tables).error().code, ErrorCode::NotFound);
  // musl's getent
  host.getent(R"([ "$1" = passwd ] || { echo "Unknown database: $1" >&2; exit 1; }
echo ann:x:1000:100:Ann:/home/of/getent:/bin/sh)");
  EXPECT_EQ(find_user("ann", tables)->home, "/home/of/getent");
  EXPECT_EQ(groups_of(*ann, tables).value(), (Ids{100, 200}));
}

// Whatever users this machine has.
TEST(FindUser, AsTheCLibraryHasThem) {
  if (!std::filesystem::exists("/usr/bin/getent")) GTEST_SKIP() << "this machine has no getent";
  std::vector<std::string> names;
  ::setpwent();
  for (const passwd* entry = ::getpwent(); entry != nullptr && names.size() < 20;
       entry = ::getpwent())
    names.emplace_back(entry->pw_name);
  ::endpwent();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    const auto user = find_user(name, {.most = std::chrono::minutes(2)});
    ASSERT_TRUE(user) << name << ": " << user.error().message;
    const passwd* entry = ::getpwnam(name.c_str());
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(*user, (User{.name = entry->pw_name,
                           .uid = entry->pw_uid,
                           .gid = entry->pw_gid,
                           .home = entry->pw_dir,
                           .shell = entry->pw_shell}));
    Ids expected(1024);
    int count = static_cast<int>(expected.size());
    ASSERT_GE(::getgrouplist(name.c_str(), entry->pw_gid, expected.data(), &count), 0);
    expected.resize(static_cast<std::size_t>(count));
    auto groups = groups_of(*user, {.most = std::chrono::minutes(2)});
    ASSERT_TRUE(groups) << name << ": " << groups.error().message;
    EXPECT_EQ(groups->front(), user->gid);
    std::ranges::sort(*groups);
    std::ranges::sort(expected);
    EXPECT_EQ(*groups, expected) << name;
  }
  EXPECT_EQ(find_user(0, {.most = std::chrono::minutes(2)})->name, ::getpwuid(0)->pw_name);
  EXPECT_EQ(find_user("no-such-user-here", {.most = std::chrono::minutes(2)}).error().code,
            ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::name_service
