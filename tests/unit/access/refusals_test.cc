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

class RefusalsClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override { return at; }
  Now at{};
};

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

  // Notes all texts after each of the times, in a child, and returns the log's lines.
  std::vector<std::string> logged(std::size_t texts, const std::vector<Duration>& passes = {
                                                         Duration(0), Duration(0)}) {
    EXPECT_EXIT(
        {
          if (!log::set_up({.daemon = "d", .file = file_, .to_stderr = false})) std::_Exit(3);
          RefusalsClock clock;
          Refusals refusals(clock);
          for (const Duration after : passes) {
            clock.at.boot += after;
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

// Regression: a refused agent had one line in the life of the process.
TEST_F(RefusalsTest, ACauseThatGoesOnHasALineEachHour) {
  EXPECT_EQ(logged(3, {Duration(0), Refusals::kWindow - Duration(1), Duration(1)}).size(), 6u);
}

TEST_F(RefusalsTest, OldCausesMakeRoom) {
  EXPECT_EQ(logged(Refusals::kTextsMost + 1, {Duration(0), Refusals::kWindow}).size(),
            2 * Refusals::kTextsMost + 2);
}

}  // namespace
}  // namespace muster::controller
