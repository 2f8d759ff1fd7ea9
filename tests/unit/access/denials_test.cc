// Regression story: whoever is refused must not fill the disk, however often and for whatever he
// asks.
#include "controller/access/denials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace muster::controller {
namespace {

class ByHand final : public Clock {
 public:
  [[nodiscard]] Now now() const override { return at; }
  Now at{.wall = WallTime(std::chrono::hours(24 * 20'000))};
};

class DenialsTest : public testing::Test {
 protected:
  DenialsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-deny-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    file_ = dir_ / "denials.log";
  }
  ~DenialsTest() override { std::filesystem::remove_all(dir_); }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::ifstream file(file_);
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  }
  static Denials::Later at_once() {
    return [](std::move_only_function<void()> task) { task(); };
  }
  static Denial denial(const std::string& job) {
    return {.user = "bob", .method = "JobService/ReadLogs", .job = job, .why = "it is alice's"};
  }
  std::filesystem::path dir_, file_;
  ByHand clock_;
};

TEST_F(DenialsTest, ACauseHasOneLineAMinute) {
  {
    Denials denials(file_, clock_, at_once());
    for (int i = 0; i < 1'000; ++i) denials.note(denial("j1"));
    ASSERT_EQ(lines().size(), 1U);
    EXPECT_EQ(lines()[0],
              "2024-10-04T00:00:00Z user=bob method=JobService/ReadLogs job=j1 count=1 "
              "why=\"it is alice's\"");
    denials.note(denial("j2"));
    EXPECT_EQ(lines().size(), 2U);
    clock_.at.boot += Denials::kWindow;
    denials.note(denial("j1"));
    ASSERT_EQ(lines().size(), 3U);
    EXPECT_NE(lines()[2].find("job=j1 count=1000 "), std::string::npos) << lines()[2];
    denials.note(denial("j1"));
    EXPECT_EQ(lines().size(), 3U);
  }
  ASSERT_EQ(lines().size(), 4U);  // what was counted since
  EXPECT_NE(lines()[3].find("job=j1 count=1 "), std::string::npos) << lines()[3];
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(DenialsTest, ManyCausesShareALine) {
  Denials denials(file_, clock_, at_once());
  for (std::size_t i = 0; i < 3 * Denials::kCausesMost; ++i)
    denials.note(denial(std::to_string(i)));
  EXPECT_LE(lines().size(), Denials::kCausesMost + 1);
}

TEST_F(DenialsTest, TheFilesAreBounded) {
  Denials denials(file_, clock_, at_once(), 1'000);
  for (int i = 0; i < 200; ++i) denials.note(denial(std::to_string(i)));
  EXPECT_LT(std::filesystem::file_size(dir_ / "denials.1.log"), 1'300U);
  std::size_t files = 0;
  for (const auto& one : std::filesystem::directory_iterator(dir_)) {
    EXPECT_LT(one.file_size(), 1'300U);
    ++files;
  }
  EXPECT_LE(files, 2U);
}

// Regression: a refusal opened and wrote the file, on the strand and in the check of each call.
TEST_F(DenialsTest, ARefusalItselfWritesNothing) {
  std::vector<std::move_only_function<void()>> tasks;
  {
    Denials denials(file_, clock_, [&](std::move_only_function<void()> task) {
      tasks.push_back(std::move(task));
    });
    for (const char* job : {"j1", "j2", "j1"}) denials.note(denial(job));
    EXPECT_FALSE(std::filesystem::exists(file_));
    ASSERT_EQ(tasks.size(), 1U) << "one task writes everything";
    tasks.front()();
    ASSERT_EQ(lines().size(), 2U);
    EXPECT_NE(lines()[0].find("job=j1 count=2 "), std::string::npos) << lines()[0];
    denials.note(denial("j1"));
    EXPECT_EQ(tasks.size(), 1U) << "its minute is not over";
    clock_.at.boot += Denials::kWindow;
    denials.note(denial("j3"));
    EXPECT_EQ(tasks.size(), 2U);
  }
  EXPECT_EQ(lines().size(), 4U);  // what was counted, at the end
}

TEST_F(DenialsTest, WhatAClientSentStaysInOneLine) {
  Denials denials(file_, clock_, at_once());
  denials.note(denial("a\nb\" x\x1b[2J" + std::string(10'000, 'c')));
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_LT(lines()[0].size(), 1'000U);
  EXPECT_EQ(lines()[0].find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace muster::controller
