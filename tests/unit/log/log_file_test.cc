// The log's file is rotated, and everything that is written to stderr goes to the new file. The
// process has one logger, so each case runs in a child.
#include "common/log/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace muster::log {
namespace {

namespace fs = std::filesystem;

class LogFile : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // The child of a threadsafe death test runs SetUp again, so the name must be the same there.
    dir_ =
        fs::temp_directory_path() / ("muster-log-test-" + std::to_string(::getpgrp()) + "-" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
    file_ = dir_ / "daemon.log";
  }
  void TearDown() override { fs::remove_all(dir_); }

  static std::string read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path dir_, file_;
};

[[noreturn]] void write_numbered(const Options& options, int lines, const char* last_words) {
  if (!set_up(options)) std::_Exit(3);
  for (int at = 0; at < lines; ++at)
    info("line", {{"number", at}, {"filler", std::string(100, 'x')}});
  if (last_words != nullptr) std::fputs(last_words, stderr);
  std::_Exit(0);
}

TEST_F(LogFile, IsTurnedOverAndKeepsTheNewestLines) {
  const Options options{.daemon = "d", .file = file_, .to_stderr = false, .file_bytes = 4096};
  EXPECT_EXIT(write_numbered(options, 1000, nullptr), testing::ExitedWithCode(0), "^$");
  std::uintmax_t bytes = 0, files = 0;
  for (const auto& entry : fs::directory_iterator(dir_)) {
    bytes += entry.file_size();
    ++files;
  }
  EXPECT_EQ(files, 4U);
  EXPECT_LE(bytes, 4 * 4096U);
  EXPECT_NE(read(file_).find("number=999 "), std::string::npos);
  EXPECT_TRUE(fs::exists(dir_ / "daemon.1.log"));
}

TEST_F(LogFile, TakesWhatGoesToStderrWhereverItStands) {
  const Options options{.daemon = "d", .file = file_, .stderr_to_file = true, .file_bytes = 4096};
  EXPECT_EXIT(write_numbered(options, 1000, "last words"), testing::ExitedWithCode(0), "^$");
  const std::string text = read(file_);
  EXPECT_TRUE(text.ends_with("last words")) << text;
  EXPECT_NE(text.find("number=999 "), std::string::npos);
  EXPECT_EQ(text.find("number=999 "), text.rfind("number=999 ")) << "no line stands twice";
}

}  // namespace
}  // namespace muster::log
