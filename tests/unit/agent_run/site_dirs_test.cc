// Directories that the agent makes as root for another user: his links lead no further than he
// could go, and links of the site are followed.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "agent/launch/user_entry.h"
#include "agent/start/run_dirs.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class SiteDirs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "only root makes directories for others; this is user " << ::geteuid();
    const auto user = find_user("nobody");
    ASSERT_TRUE(user);
    user_ = *user;
    fs::permissions(dir_.path(), static_cast<fs::perms>(0755));
    for (const char* dir : {"site", "home", "of root"}) fs::create_directories(dir_.path() / dir);
    give("home");
  }
  void give(const std::string& name) const {
    ASSERT_EQ(::lchown((dir_.path() / name).c_str(), user_.uid, user_.gid), 0);
  }
  [[nodiscard]] Result<void> make(const std::string& name) const {
    v1::NodeLaunch order;
    order.add_make_dirs((dir_.path() / name).string());
    return make_output_dirs(order, &user_);
  }
  [[nodiscard]] uid_t owner_of(const std::string& name) const {
    struct stat info{};
    EXPECT_EQ(::lstat((dir_.path() / name).c_str(), &info), 0) << name;
    return info.st_uid;
  }
  [[nodiscard]] bool untouched() const { return fs::is_empty(dir_.path() / "of root"); }

  TempDir dir_;
  UserEntry user_;
};

TEST_F(SiteDirs, AreHisInHisOwnAndInTheSites) {
  for (const std::string place : {"home", "site"}) {
    const auto made = make(place + "/a/b");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(owner_of(place + "/a"), user_.uid);
    EXPECT_EQ(owner_of(place + "/a/b"), user_.uid);
    EXPECT_TRUE(make(place + "/a/b")) << "again is no error";
    EXPECT_EQ(fs::status(dir_.path() / place / "a/b").permissions(), static_cast<fs::perms>(0755));
  }
  EXPECT_EQ(owner_of("site"), 0U);
}

TEST_F(SiteDirs, LinksOfTheSiteAreFollowed) {
  fs::create_directory_symlink("site", dir_.path() / "near");
  fs::create_directory_symlink(dir_.path() / "site", dir_.path() / "far");
  fs::create_directory_symlink("../site/../near", dir_.path() / "home/round");
  for (const std::string name : {"near/one", "far/two", "home/round/three"}) {
    const auto made = make(name);
    ASSERT_TRUE(made) << made.error().message;
  }
  for (const std::string name : {"site/one", "site/two", "site/three"})
    EXPECT_EQ(owner_of(name), user_.uid);
  fs::create_directory_symlink("loop", dir_.path() / "loop");
  EXPECT_EQ(make("loop/x").error().code, ErrorCode::InvalidArgument);
}

TEST_F(SiteDirs, HisLinkLeadsNoFurtherThanHeCouldGo) {
  fs::create_directory_symlink(dir_.path() / "of root", dir_.path() / "home/link");
  give("home/link");
  const auto made = make("home/link/new");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::NotAllowed);
  EXPECT_NE(
      made.error().message.find("'link' on the way is a link of user " + std::to_string(user_.uid)),
      std::string::npos)
      << made.error().message;
  EXPECT_TRUE(untouched());
  // where he may write himself, he may also use links
  fs::create_directories(dir_.path() / "his");
  give("his");
  fs::create_directory_symlink(dir_.path() / "his", dir_.path() / "home/own");
  give("home/own");
  EXPECT_TRUE(make("home/own/new"));
  EXPECT_EQ(owner_of("his/new"), user_.uid);
}

// He replaces a directory by a link and back while the agent makes another one below it.
TEST_F(SiteDirs, HoweverFastHeReplacesItNothingIsMadeElsewhere) {
  fs::create_directories(dir_.path() / "home/a");
  give("home/a");
  fs::create_directory_symlink(dir_.path() / "of root", dir_.path() / "home/swap");
  give("home/swap");
  const std::string one = (dir_.path() / "home/a").string();
  const std::string other = (dir_.path() / "home/swap").string();
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0)
    GTEST_SKIP() << "this file system does not exchange names";
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> swaps{0};
  std::thread job([&] {
    while (!end) {
      ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      ++swaps;
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t last = swaps;
    (void)make("home/a/x/" + std::to_string(i));
    for (; swaps == last; std::this_thread::yield()) continue;
  }
  end = true;
  job.join();
  EXPECT_TRUE(untouched());
}

TEST_F(SiteDirs, ResumeLinksAreMadeWithHisRights) {
  v1::ResumeLinks resume;
  resume.set_dir((dir_.path() / "home/out/resume").string());
  v1::CheckpointReading reading;
  const auto made = make_resume_links(resume, &user_, reading, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(owner_of("home/out/resume"), user_.uid);
  ASSERT_TRUE(make_resume_links(resume, &user_, reading, {})) << "again";
  // His directory is a link to one of root now, in which a directory has the same name.
  fs::remove_all(dir_.path() / "home/out");
  fs::create_directories(dir_.path() / "of root/resume");
  dir_.write("of root/resume/canary", "canary");
  fs::create_directory_symlink(dir_.path() / "of root", dir_.path() / "home/out");
  give("home/out");
  EXPECT_FALSE(make_resume_links(resume, &user_, reading, {}));
  EXPECT_EQ(read_text(dir_.path() / "of root/resume/canary"), "canary");
  EXPECT_EQ(
      std::distance(fs::directory_iterator(dir_.path() / "of root"), fs::directory_iterator()), 1);
  struct stat info{};
  dir_.write("mine again", "");
  ASSERT_EQ(::stat((dir_.path() / "mine again").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U) << "this thread has its own rights back";
}

}  // namespace
}  // namespace muster::agent
