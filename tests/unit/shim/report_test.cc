// What a launch reports about itself and about those before it.
#include "worker/shim/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/io/file.h"
#include "common/process/identity.h"
#include "common/process/spawn.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Reports : public testing::Test {
 protected:
  Reports() {
    std::string pattern = (fs::temp_directory_path() / "report.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~Reports() override { fs::remove_all(dir_); }
  [[nodiscard]] std::string file() const { return (dir_ / "launches").string(); }
  [[nodiscard]] std::string text() const { return io::read_file(file(), 65536).value_or(""); }
  fs::path dir_;
};

// One was killed and reaped, one is a zombie, one lives: the last one may still end with success or
// failure.
TEST_F(Reports, NamesThoseThatAreGoneWithoutAnEnd) {
  const auto spawned =
      process::spawn({.path = "/bin/sleep", .argv = {"sleep", "1000"}, .env = {}, .cwd = {}});
  ASSERT_TRUE(spawned);
  const pid_t child = *spawned;
  const auto id = process::identify(child);
  ASSERT_TRUE(id);
  const auto own = process::self();
  ASSERT_TRUE(own);
  const std::string start = std::to_string(id->start_time), number = std::to_string(child),
                    self = std::to_string(own->pid);
  std::ofstream(file()) << "begin " << number << " " << start
                        << "\nbegin 1 1\nend 1 0 0 \nbegin x\n\xff\n";
  {
    const Report report(file());
  }
  EXPECT_THAT(text(), Not(HasSubstr("gone")));
  EXPECT_THAT(text(), HasSubstr("begin " + self + " " + std::to_string(own->start_time) + "\n"));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  {
    const Report report(file());
  }
  EXPECT_THAT(text(), HasSubstr("gone " + number + "\nbegin ")) << "a zombie";
  EXPECT_THAT(text(), Not(HasSubstr("gone " + self))) << "it lives";
  EXPECT_THAT(text(), Not(HasSubstr("gone 1\n"))) << "it has told its end";
  ::waitpid(child, nullptr, 0);
  std::ofstream(file()) << "begin " << self << " 1\n";
  {
    const Report report(file());
  }
  EXPECT_THAT(text(), HasSubstr("gone " + self + "\nbegin "))
      << "the number is another process's by now";
}

TEST_F(Reports, TellsAnEnd) {
  const Report report(file());
  report.end({.name = "rank 5", .code = -1, .signal = 9});
  EXPECT_THAT(text(), HasSubstr("end " + std::to_string(::getpid()) + " -1 9 rank 5\n"));
  const Report nowhere("");
  nowhere.end({});
}

TEST_F(Reports, TellsWhatTheLaunchIs) {
  const Report report(file(),
                      {.first_rank = 8,
                       .ranks = 2,
                       .saves = "/data/my ckpt",
                       .weights_alone = true,
                       .logs = {{8, "/out/logs/rank_8.log"}, {9, "/out/lo\ngs/rank_9.log"}}});
  EXPECT_THAT(text(), HasSubstr("saves 8 2 alone /data/my ckpt\nlog 8 /out/logs/rank_8.log\n"));
  EXPECT_THAT(text(), Not(HasSubstr("log 9")));
}

}  // namespace
}  // namespace muster::shim
