// A removal stays in its tree, whatever is in it, and whoever changes it meanwhile.
#include "common/io/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace muster::io {
namespace {

namespace fs = std::filesystem;

class RemoveTree : public testing::Test {
 protected:
  RemoveTree() {
    std::string pattern = (fs::temp_directory_path() / "remove.XXXXXX").string();
    base_ = ::mkdtemp(pattern.data());
    fs::create_directories(base_ / "run");
    fs::create_directories(base_ / "outside/dir");
    std::ofstream(base_ / "outside/canary") << "canary";
    std::ofstream(base_ / "outside/dir/canary") << "canary";
  }
  ~RemoveTree() override { fs::remove_all(base_); }
  void write(const fs::path& file) const {
    fs::create_directories((base_ / file).parent_path());
    std::ofstream(base_ / file) << "text";
  }
  [[nodiscard]] Result<void> remove(const std::string& name = "run") const {
    const auto above = Beneath::open(base_);
    return above ? remove_tree(*above, name) : Result<void>(fail(Error(above.error())));
  }
  void expect_canaries() const {
    EXPECT_TRUE(fs::is_regular_file(base_ / "outside/canary"));
    EXPECT_TRUE(fs::is_regular_file(base_ / "outside/dir/canary"));
    EXPECT_EQ(fs::file_size(base_ / "outside/canary"), 6U);
  }
  [[nodiscard]] bool is_there(const fs::path& path) const {
    return fs::exists(fs::symlink_status(base_ / path));
  }
  fs::path base_;
};

TEST_F(RemoveTree, RemovesEverythingBelow) {
  for (const char* file : {"run/a", "run/b/c", "run/b/d/e", "run/.gone-0", "run/b/.gone-1/x",
                           "run/.gone-2/.gone-3/.gone-4/y"})
    write(file);
  ASSERT_EQ(::mkfifo((base_ / "run/b/pipe").c_str(), 0600), 0);
  fs::create_directories(base_ / "run/empty/empty");
  const auto removed = remove();
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(is_there("run"));
  EXPECT_TRUE(remove()) << "what is gone is no error";
  write("file");
  EXPECT_TRUE(remove("file"));
  EXPECT_FALSE(is_there("file"));
}

// For root every directory is open: the test can fail as another user only.
TEST_F(RemoveTree, ADirectoryThatIsClosedToItsOwner) {
  write("run/closed/deep/file");
  for (const char* dir : {"run/closed/deep", "run/closed"})
    fs::permissions(base_ / dir, fs::perms::none);
  const auto removed = remove();
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(is_there("run"));
}

TEST_F(RemoveTree, LinksAreRemovedAndNotFollowed) {
  fs::create_directory_symlink(base_ / "outside", base_ / "run/link");
  fs::create_directories(base_ / "run/a");
  fs::create_directory_symlink(base_ / "outside/dir", base_ / "run/a/link");
  fs::create_symlink(base_ / "outside/canary", base_ / "run/a/file");
  fs::create_hard_link(base_ / "outside/canary", base_ / "run/a/hard");
  EXPECT_TRUE(remove());
  EXPECT_FALSE(is_there("run"));
  fs::create_directory_symlink(base_ / "outside", base_ / "run");
  EXPECT_TRUE(remove()) << "a link in its place";
  EXPECT_FALSE(is_there("run"));
  expect_canaries();
}

TEST_F(RemoveTree, HoweverDeepAndHoweverWideItIs) {
  constexpr int kDeep = 2'000, kWide = 5'000;
  UniqueFd at(::open((base_ / "run").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < kWide; ++i) {
    const UniqueFd file(
        ::openat(at.get(), std::to_string(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(file);
  }
  for (int i = 0; i < kDeep; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    at = UniqueFd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  at.reset();
  EXPECT_TRUE(remove());
  EXPECT_FALSE(is_there("run"));
}

TEST_F(RemoveTree, OpensWhatItsOwnerHasClosed) {
  write("run/a/b/c/file");
  for (const char* dir : {"run/a/b/c", "run/a/b", "run/a"})
    fs::permissions(base_ / dir, fs::perms::owner_read | fs::perms::owner_exec);
  const auto removed = remove();
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(is_there("run"));
}

// A process changes a directory of the tree into a link that leads out, and back.
TEST_F(RemoveTree, NothingOutsideIsRemovedWhileItIsReplaced) {
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> swaps{0};
  fs::create_directory_symlink(base_ / "outside", base_ / "swap");
  const std::string one = (base_ / "run/a").string(), other = (base_ / "swap").string();
  std::thread job([&] {
    while (!end) {
      ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      ++swaps;
    }
  });
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t last = swaps;
    std::error_code ignored;
    fs::create_directories(base_ / "run/a/dir", ignored);
    if (!is_there("swap")) fs::create_directory_symlink(base_ / "outside", base_ / "swap", ignored);
    std::ofstream(base_ / "run/b") << "text";
    for (; swaps == last; std::this_thread::yield()) continue;
    (void)remove();
    ASSERT_TRUE(fs::is_regular_file(base_ / "outside/canary"));
    ASSERT_TRUE(fs::is_regular_file(base_ / "outside/dir/canary"));
  }
  end = true;
  job.join();
  expect_canaries();
  EXPECT_TRUE(remove());
  EXPECT_FALSE(is_there("run"));
}

TEST_F(RemoveTree, WhatIsMountedStaysAndIsNamed) {
  write("run/a/b/file");
  write("run/c/file");
  fs::create_directories(base_ / "run/a/mounted");
  const pid_t child = ::fork();
  if (child == 0) {
    // of the same device: only the mount itself shows it
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        ::mount((base_ / "outside").c_str(), (base_ / "run/a/mounted").c_str(), nullptr, MS_BIND,
                "") != 0)
      ::_exit(77);
    const auto removed = remove();
    const bool named = !removed && removed.error().message.find("mounted") != std::string::npos;
    const bool rest = is_there("run/c") || is_there("run/a/b");
    ::_exit(!named ? 1 : rest ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_canaries();
}

}  // namespace
}  // namespace muster::io
