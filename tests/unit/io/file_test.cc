#include "common/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace muster::io {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "files.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(dir_); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }
  // The number in the name of the next temporary file. Only an error shows the one before.
  [[nodiscard]] unsigned next_number() const {
    const auto failed = replace_file(dir_ / "no" / "x", "", Durable::No);
    const std::string begin = ".x." + std::to_string(::getpid()) + ".";
    const std::string text = failed ? "" : failed.error().message;
    const std::size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos
               ? 0
               : static_cast<unsigned>(std::stoul(text.substr(at + begin.size()))) + 1;
  }
  fs::path dir_;
};

TEST_F(Files, ReplaceShowsTheNewBytesWithModePrivate) {
  for (const auto durable : {Durable::No, Durable::Yes}) {
    ASSERT_TRUE(replace_file(dir_ / "x", "old", durable));
    ASSERT_TRUE(replace_file(dir_ / "x", "newer", durable));
    EXPECT_EQ(*read_file(dir_ / "x", 100), "newer");
    EXPECT_EQ(fs::status(dir_ / "x").permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(entries(), 1U) << "a temporary file was left";
  }
}

TEST_F(Files, ReadHasABoundAndSaysWhatIsMissing) {
  ASSERT_TRUE(replace_file(dir_ / "x", std::string(10000, 'x'), Durable::No));
  EXPECT_EQ(read_file(dir_ / "x", 10000)->size(), 10000U);
  EXPECT_EQ(read_file(dir_ / "x", 9999).error().code, ErrorCode::ResourceExhausted);
  const auto missing = read_file(dir_ / "y", 10);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_EQ(missing.error().message,
            "opening '" + (dir_ / "y").string() + "': No such file or directory");
}

TEST_F(Files, APipeInTheFilesPlaceIsAnErrorAtOnce) {
  ASSERT_EQ(::mkfifo((dir_ / "x").c_str(), 0600), 0);
  // read_file() would block for ever
  const auto read = read_regular_file(dir_ / "x", 100);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("it is no regular file"), std::string::npos)
      << read.error().message;
  EXPECT_FALSE(read_regular_file("/dev/zero", 100));
  EXPECT_FALSE(read_regular_file(dir_, 100));
}

TEST_F(Files, ReadOfProcGoesToTheEnd) {
  EXPECT_GT(read_file("/proc/self/status", 1 << 20)->size(), 100U);
}

TEST_F(Files, OfManyCreatorsOneWinsAndNobodyReadsAPart) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    const auto path = dir_ / std::to_string(round);
    std::atomic<int> winner{-1};
    std::atomic<int> winners{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          const auto created =
              create_file(path, std::string(5000, static_cast<char>('a' + i)), Durable::No);
          if (created && *created) {
            winner = i;
            ++winners;
          } else if (created) {
            // a loser can already read all of it
            EXPECT_EQ(read_file(path, 10000)->size(), 5000U);
          }
        });
      }
    }
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(*read_file(path, 10000), std::string(5000, static_cast<char>('a' + winner)));
  }
  EXPECT_EQ(entries(), 50U) << "a temporary file was left";
}

TEST_F(Files, CreateMakesAFileWithModePrivate) {
  for (const auto durable : {Durable::No, Durable::Yes}) {
    const auto path = dir_ / std::to_string(static_cast<int>(durable));
    EXPECT_TRUE(*create_file(path, "new", durable));
    EXPECT_FALSE(*create_file(path, "newer", durable));
    EXPECT_EQ(*read_file(path, 100), "new");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_EQ(entries(), 2U) << "a temporary file was left";
}

// Regression: a temporary file that somebody else had made was opened, and kept its mode and its
// readers.
TEST_F(Files, ATemporaryFileIsAlwaysNew) {
  ASSERT_TRUE(create_file(dir_ / "victim", "whole", Durable::No));
  const unsigned next = next_number();
  std::vector<fs::path> planted;
  for (unsigned number = next; number < next + 8; ++number) {
    planted.push_back(dir_ / (".x." + std::to_string(::getpid()) + "." + std::to_string(number)));
    if (number % 2 == 0) {
      fs::create_symlink(dir_ / "victim", planted.back());
    } else {
      std::ofstream(planted.back()) << "theirs";
      fs::permissions(planted.back(), static_cast<fs::perms>(0666));
    }
  }
  ASSERT_TRUE(replace_file(dir_ / "x", "secret", Durable::No));
  EXPECT_EQ(*read_file(dir_ / "x", 100), "secret");
  EXPECT_FALSE(fs::is_symlink(dir_ / "x"));
  EXPECT_EQ(fs::status(dir_ / "x").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(*read_file(dir_ / "victim", 100), "whole");
  for (const fs::path& file : planted) {
    ASSERT_TRUE(fs::exists(fs::symlink_status(file))) << file;
    if (!fs::is_symlink(file)) {
      EXPECT_EQ(*read_file(file, 100), "theirs");
    }
  }
}

TEST_F(Files, TheSearchForATemporaryNameHasABound) {
  const unsigned next = next_number();
  for (unsigned number = next; number < next + 100; ++number)
    std::ofstream(dir_ / (".x." + std::to_string(::getpid()) + "." + std::to_string(number)));
  const auto replaced = replace_file(dir_ / "x", "", Durable::No);
  ASSERT_FALSE(replaced);
  EXPECT_TRUE(replaced.error().message.ends_with("File exists")) << replaced.error().message;
  EXPECT_FALSE(fs::exists(dir_ / "x"));
  EXPECT_TRUE(replace_file(dir_ / "x", "", Durable::No)) << "the next call has other names";
}

TEST_F(Files, ACheckSeesTheOpenFileAndItsErrorCounts) {
  ASSERT_TRUE(replace_file(dir_ / "x", "text", Durable::No));
  const auto taken = read_checked_file(dir_ / "x", 100, [](const struct stat& status) {
    EXPECT_EQ(status.st_size, 4);
    return Result<void>();
  });
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(*taken, "text");
  const auto refused = read_checked_file(dir_ / "x", 100, [](const struct stat&) {
    return Result<void>(fail(ErrorCode::NotAllowed, "no"));
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{ErrorCode::NotAllowed, "no"}));
}

TEST_F(Files, MakeDirsMakesParentsAndTakesWhatIsThere) {
  const mode_t old_mask = ::umask(077);
  ASSERT_TRUE(make_dirs(dir_ / "a" / "b" / "c", 0755));
  ::umask(old_mask);
  EXPECT_TRUE(make_dirs(dir_ / "a" / "b" / "c", 0700));
  struct stat status{};
  ASSERT_EQ(::stat((dir_ / "a/b/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
  ASSERT_TRUE(replace_file(dir_ / "file", "", Durable::No));
  EXPECT_FALSE(make_dirs(dir_ / "file", 0700));
  EXPECT_FALSE(make_dirs(dir_ / "file" / "below", 0700));
}

TEST_F(Files, ReplaceInAFolderThatIsNotThereFails) {
  EXPECT_EQ(replace_file(dir_ / "no" / "x", "", Durable::No).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::io
