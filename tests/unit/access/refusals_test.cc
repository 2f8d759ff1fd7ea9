// The log is the process's own, so each case runs in a child.
#include "controller/access/refusals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/log/log.h"

namespace muster::controller {
namespace {

namespace fs = std::filesystem;

class RefusalsTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // The child of a threadsafe death test runs SetUp again, so the name must be the same there.
    file_ = fs::temp_directory_path() /
            ("muster-refusals-" + std::to_string(::getpgrp()) + "-" +
             testing::UnitTest::GetInstance()->current_test_info()->name() + ".log");
  }
  void TearDown() override { fs::remove(file_); }

  // Notes each text twice, in a child, and returns the log's lines.
  std::vector<std::string> logged(std::size_t texts) {
    EXPECT_EXIT(
        {
          if (!log::set_up({.daemon = "d", .file = file_, .to_stderr = false})) std::_Exit(3);
          Refusals refusals;
          for (int time = 0; time < 2; ++time) {
            for (std::size_t i = 0; i < texts; ++i) refusals.note("cause " + std::to_string(i));
          }
          log::flush();
          std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
    std::ifstream in(file_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  fs::path file_;
};

TEST_F(RefusalsTest, EachCauseIsOneLine) {
  const auto lines = logged(3);
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NE(lines[i].find("a call was refused"), std::string::npos) << lines[i];
    EXPECT_NE(lines[i].find("cause " + std::to_string(i)), std::string::npos) << lines[i];
  }
}

TEST_F(RefusalsTest, AfterABoundThereIsOneLineMore) {
  const auto lines = logged(Refusals::kTextsMost + 500);
  ASSERT_EQ(lines.size(), Refusals::kTextsMost + 1);
  EXPECT_NE(lines.back().find("no more of them are"), std::string::npos) << lines.back();
}

}  // namespace
}  // namespace muster::controller
