// A directory in which a job replaces what it likes: nothing leads out of it, whichever way the
// kernel offers. Each test runs with openat2 (where this kernel has it) and part by part.
#include "common/io/beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace muster::io {
namespace {

namespace fs = std::filesystem;

using Open = UniqueFd (*)(int, const fs::path&, int, unsigned);

class BeneathTest : public testing::TestWithParam<Open> {
 protected:
  BeneathTest() {
    std::string pattern = (fs::temp_directory_path() / "beneath.XXXXXX").string();
    base_ = ::mkdtemp(pattern.data());
    fs::create_directories(base_ / "run/a/b");
    fs::create_directories(base_ / "outside/b");
    for (const char* file : {"run/top", "run/a/file", "run/a/b/deep"}) write(file, "inside");
    for (const char* file : {"outside/file", "outside/b/deep"}) write(file, "outside");
    dir_.reset(::open((base_ / "run").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~BeneathTest() override { fs::remove_all(base_); }
  void write(const fs::path& file, const std::string& text) const {
    std::ofstream(base_ / file) << text;
  }
  [[nodiscard]] UniqueFd open(const fs::path& name, int flags = O_RDONLY, unsigned mode = 0) const {
    return GetParam()(dir_.get(), name, flags, mode);
  }
  // 0: it could be opened
  [[nodiscard]] int error_of(const fs::path& name, int flags = O_RDONLY) const {
    return open(name, flags) ? 0 : errno;
  }
  [[nodiscard]] std::string text_of(const fs::path& name) const {
    const UniqueFd fd = open(name);
    if (!fd) return "errno " + std::to_string(errno);
    std::string text(100, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(fd.get(), text.data(), 100))));
    return text;
  }
  fs::path base_;
  UniqueFd dir_;
};

TEST_P(BeneathTest, OpensWhatIsThere) {
  EXPECT_EQ(text_of("top"), "inside");
  EXPECT_EQ(text_of("a/file"), "inside");
  EXPECT_EQ(text_of("a/b/deep"), "inside");
  EXPECT_TRUE(open("a/b", O_PATH | O_DIRECTORY));
  EXPECT_TRUE(open("a/b/", O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(error_of("a/none"), ENOENT);
  EXPECT_EQ(error_of("none/file"), ENOENT);
  EXPECT_EQ(error_of("top/file"), ENOTDIR);
  const UniqueFd made = open("a/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
  struct stat info{};
  ASSERT_TRUE(made);
  ASSERT_EQ(::fstat(made.get(), &info), 0);
  EXPECT_EQ(
      info.st_mode & 0777U, 0640U & ~[] {
        const mode_t mask = ::umask(0);
        ::umask(mask);
        return mask;
      }());
  EXPECT_NE(::fcntl(made.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_P(BeneathTest, ALinkInAnyPartIsRefused) {
  fs::create_symlink(base_ / "outside/file", base_ / "run/a/link");
  fs::create_symlink(base_ / "outside", base_ / "run/out");
  fs::create_symlink("a", base_ / "run/near");
  fs::create_symlink("/proc/self/cwd", base_ / "run/magic");
  EXPECT_EQ(error_of("a/link"), ELOOP);
  EXPECT_EQ(error_of("out/file"), ELOOP);
  EXPECT_EQ(error_of("out/b/deep"), ELOOP);
  EXPECT_EQ(error_of("near/file"), ELOOP) << "also one that stays below";
  EXPECT_EQ(error_of("magic/file"), ELOOP);
  EXPECT_EQ(error_of("out", O_RDONLY | O_DIRECTORY), ELOOP);
  EXPECT_EQ(error_of("a/link", O_WRONLY | O_CREAT), ELOOP);
  EXPECT_EQ(error_of("a/link", O_WRONLY | O_TRUNC), ELOOP);
  EXPECT_EQ(fs::file_size(base_ / "outside/file"), 7U);
}

TEST_P(BeneathTest, NoNameLeadsOut) {
  for (const char* name : {"..", "../outside/file", "a/../../outside/file", "a/../top", ""})
    EXPECT_EQ(error_of(name), EXDEV) << name;
  EXPECT_EQ(error_of(base_ / "outside/file"), EXDEV);
}

TEST_P(BeneathTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((base_ / "run/a/pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of("a/pipe", O_WRONLY), ENXIO);
  EXPECT_TRUE(open("a/pipe"));
}

// A job changes a directory into a link and back without end. Every opening sees the file inside,
// or none.
TEST_P(BeneathTest, HoweverFastItIsReplacedNothingOutsideIsOpened) {
  fs::create_symlink(base_ / "outside", base_ / "swap");
  const std::string one = (base_ / "run/a").string(), other = (base_ / "swap").string();
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
  constexpr std::uint64_t kWanted = 50, kMost = 50'000'000;
  std::uint64_t inside = 0, refused = 0, last = 0;
  for (std::uint64_t i = 0; i < kMost && (inside < kWanted || refused < kWanted); ++i) {
    const std::string text = text_of("a/b/deep");
    if (text == "inside") {
      ++inside;
    } else if (text == "errno " + std::to_string(ELOOP)) {
      ++refused;
    } else if (text == "outside") {
      ADD_FAILURE() << "the link was followed";
      break;
    }
    // The other thread must run between two openings, however few processors there are.
    for (; swaps == last; std::this_thread::yield()) continue;
    last = swaps;
  }
  end = true;
  job.join();
  EXPECT_GE(inside, kWanted);
  EXPECT_GE(refused, kWanted);
}

INSTANTIATE_TEST_SUITE_P(Ways, BeneathTest, testing::Values(&open_beneath, &open_beneath_by_parts),
                         [](const auto& way) {
                           return way.param == &open_beneath ? "Kernel" : "ByParts";
                         });

TEST(BeneathDir, ALinkInItsPlaceIsNoDirectory) {
  std::string pattern = (fs::temp_directory_path() / "beneath.XXXXXX").string();
  const fs::path base = ::mkdtemp(pattern.data());
  fs::create_directories(base / "real/run/logs");
  fs::create_symlink(base / "real", base / "site");
  fs::create_symlink(base / "real/run", base / "run");
  EXPECT_TRUE(Beneath::open(base / "site/run")) << "links above it are the site's";
  const auto link = Beneath::open(base / "run");
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(link.error().message,
            "opening '" + (base / "run").string() + "': a link is in its place");
  EXPECT_TRUE(Beneath::open(base / "run", Links::Follow));
  EXPECT_EQ(Beneath::open(base / "none").error().code, ErrorCode::NotFound);
  const auto run = Beneath::open(base / "real/run");
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->below("logs"));
  EXPECT_TRUE(run->make_dir("logs", 0700)) << "again is no error";
  fs::remove(base / "real/run/logs");
  fs::create_symlink(base, base / "real/run/logs");
  EXPECT_EQ(run->below("logs").error().code, ErrorCode::DataLoss);
  EXPECT_EQ(run->make_dir("logs", 0700).error().code, ErrorCode::DataLoss);
  const mode_t mask = ::umask(0777);
  EXPECT_TRUE(run->make_dir("new", 0700));
  ::umask(mask);
  EXPECT_EQ(fs::status(base / "real/run/new").permissions(), fs::perms::owner_all);
  fs::remove_all(base);
}

}  // namespace
}  // namespace muster::io
