// Ranks as children of a process that acts exactly as the shim.
#include "worker/shim/gang.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <vector>

#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

class Gangs : public testing::Test {
 protected:
  Gangs() {
    std::string pattern = (fs::temp_directory_path() / "gang.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    EXPECT_EQ(::pipe(pids_.data()), 0);
    EXPECT_EQ(::pipe(answer_.data()), 0);
  }
  ~Gangs() override {
    if (shim_ > 0) {
      ::kill(shim_, SIGKILL);
      (void)::waitpid(shim_, nullptr, 0);
    }
    for (const int fd : {pids_[0], pids_[1], answer_[0], answer_[1]}) ::close(fd);
    fs::remove_all(dir_);
  }
  // Each rank reports its pid, and ends when the test orders it. The order uses a FIFO, because
  // bash may miss a signal that it gets right before a `read`.
  void start(unsigned ranks) {
    std::vector<Process> processes;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      const std::string fifo = (dir_ / ("go-" + std::to_string(rank))).string();
      ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
      go_.emplace_back(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_TRUE(go_.back());
      processes.push_back(
          {.name = "rank " + std::to_string(rank),
           .log = (dir_ / std::to_string(rank)).string(),
           .link = {},
           .argv = {"/bin/bash", "-c",
                    "echo " + std::to_string(rank) + " $$ >&9; read -r <'" + fifo + "'; exit 1"},
           .environment = {{"PATH", "/usr/bin:/bin"}}});
    }
    shim_ = ::fork();  // tidy: allow (one thread, and nothing of gRPC)
    ASSERT_GE(shim_, 0);
    if (shim_ > 0) return;
    ::setpgid(0, 0);
    ::dup2(pids_[1], 9);
    const auto ended = run_gang(processes, {.launcher = "torchrun", .grace_ms = 20'000});
    const std::string text = ended ? ended->name + ": " + std::to_string(ended->code) + " " +
                                         std::to_string(ended->signal)
                                   : ended.error().message;
    (void)!::write(answer_[1], text.data(), text.size());
    ::_exit(0);
  }
  pid_t pid_of(unsigned rank) {
    while (!known_.contains(rank)) {
      std::string line;
      for (char c = 0; ::read(pids_[0], &c, 1) == 1 && c != '\n';) line += c;
      unsigned who = 0;
      int pid = 0;
      if (std::sscanf(line.c_str(), "%u %d", &who, &pid) != 2) return 0;
      known_[who] = pid;
    }
    return known_[rank];
  }
  void give_up(unsigned rank) { ASSERT_EQ(::write(go_[rank].get(), "\n", 1), 1); }
  // Waits until it has ended, reaped or not.
  static bool ends(const io::UniqueFd& pidfd) {
    pollfd wait{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 60'000) == 1;
  }
  std::string answer() {
    pollfd wait{.fd = answer_[0], .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 60'000) != 1) return "no answer";
    std::array<char, 256> room{};
    const ssize_t count = ::read(answer_[0], room.data(), room.size());
    return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  fs::path dir_;
  std::array<int, 2> pids_{}, answer_{};  // pipes
  std::vector<io::UniqueFd> go_;          // one for each rank
  std::map<unsigned, pid_t> known_;
  pid_t shim_ = 0;
};

io::UniqueFd open_pid(pid_t pid) {
  return io::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Regression: on a loaded machine, the shim noticed both ends at once, and the neighbor's status 1
// hid the rank that was killed.
TEST_F(Gangs, ARankThatWasKilledComesBeforeANeighbourThatGaveUp) {
  start(2);
  const pid_t first = pid_of(0), second = pid_of(1);
  ASSERT_GT(first, 0);
  ASSERT_GT(second, 0);
  const io::UniqueFd watch_first = open_pid(first), watch_second = open_pid(second);
  ASSERT_EQ(::kill(shim_, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(shim_, &status, WUNTRACED), shim_);
  ASSERT_TRUE(WIFSTOPPED(status));
  give_up(0);
  ::kill(second, SIGKILL);
  ASSERT_TRUE(ends(watch_first));
  ASSERT_TRUE(ends(watch_second));
  ASSERT_EQ(::kill(shim_, SIGCONT), 0);
  EXPECT_EQ(answer(), "rank 1: -1 9");
}

TEST_F(Gangs, OfTwoThatGaveUpTheFirstIsNamed) {
  start(2);
  ASSERT_GT(pid_of(0), 0);
  ASSERT_GT(pid_of(1), 0);
  give_up(1);
  EXPECT_EQ(answer(), "rank 1: 1 0");
}

}  // namespace
}  // namespace muster::shim
