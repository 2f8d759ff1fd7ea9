// The supervisor with a daemon that is a script: when it starts it again, and when it does not.
#include "deploy/supervise/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace muster::supervise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Supervise : public testing::Test {
 protected:
  Supervise() {
    std::string name = (fs::temp_directory_path() / "superviseXXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    dir_ = name;
  }
  ~Supervise() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  // Each start of it adds a line with its pid to the file `pids`.
  void daemon(const std::string& script) const {
    std::ofstream(dir_ / "command-line")
        << "/bin/sh\n-c\necho $$ >> '" << (dir_ / "pids").string() << "'; " << script << "\n";
  }
  [[nodiscard]] std::string read(const char* name) const {
    std::ifstream in(dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path dir_;
};

TEST_F(Supervise, ADaemonThatWouldEndSoAgainIsNotStartedAgain) {
  for (const char* code : {"64", "77"}) {
    fs::remove(dir_ / "pids");
    daemon(std::string("exit ") + code);
    const auto ended = run(dir_);
    ASSERT_TRUE(ended) << ended.error().message;
    const std::string pids = read("pids");
    EXPECT_EQ(std::count(pids.begin(), pids.end(), '\n'), 1) << pids;
    EXPECT_THAT(read("supervisor.log"),
                HasSubstr(std::string("status ") + code + "; another start would end so, too"));
    EXPECT_FALSE(fs::exists(dir_ / "supervisor"));
  }
}

// Nobody could stop a daemon that no file names, and every start would find the lock taken.
TEST_F(Supervise, ADaemonThatCannotBeNotedIsEnded) {
  fs::create_directories(dir_ / "supervisor/in-the-way");
  daemon("exec sleep 600");
  const auto ended = run(dir_);
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().message, HasSubstr("noting which process the daemon is"));
  const std::string pid = read("pids");
  if (!pid.empty()) {  // it may have ended before its first line
    EXPECT_EQ(::kill(static_cast<pid_t>(std::stol(pid)), 0), -1);
    EXPECT_EQ(errno, ESRCH);
  }
  fs::remove_all(dir_ / "supervisor");
  daemon("exit 64");
  EXPECT_TRUE(run(dir_)) << "the lock is free";
}

// As on a full disk: the first run was noted, the second one cannot be for a while.
TEST_F(Supervise, ADaemonThatCannotBeNotedAgainGoesOn) {
  const std::string file = "'" + (dir_ / "supervisor").string() + "'";
  const std::string pids = "'" + (dir_ / "pids").string() + "'";
  const std::string log = "'" + (dir_ / "supervisor.log").string() + "'";
  // The second run waits at its first line, until it is noted.
  daemon("if [ $(wc -l < " + pids + ") = 1 ]; then until [ -f " + file +
         " ]; do sleep 0.02; done; rm " + file + "; mkdir -p " + file +
         "/in-the-way; exit 1; fi; until grep -q 'trying again' " + log +
         "; do sleep 0.02; done; rm -r " + file + "; until grep -q \" $$ \" " + file +
         "; do sleep 0.02; done; exit 64");
  const auto ended = run(dir_);
  ASSERT_TRUE(ended) << ended.error().message;
  const std::string starts = read("pids");
  EXPECT_EQ(std::count(starts.begin(), starts.end(), '\n'), 2) << starts;
  EXPECT_THAT(read("supervisor.log"), HasSubstr("noting which process the daemon is: "));
}

}  // namespace
}  // namespace muster::supervise
