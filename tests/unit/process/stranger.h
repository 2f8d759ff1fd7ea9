// A process that belongs to nobody, and whose environment reads as empty although it had one. A
// test owns it; the process lives as long as the object. It runs on the test's thread.
//
// A process that hangs in its exit looks like this. Its process tag is unknown. So a scan for a
// process tag must wait for it, or know that it is too old to matter.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "common/process/identity.h"

namespace muster::process {

class Stranger {
 public:
  // A process that is started after this is younger, also by the kernel's clock ticks.
  Stranger() {
    const auto own = read_stat(::getpid());
    EXPECT_TRUE(own && own->env_end > own->env_start);
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) hide(own->env_start, own->env_end, ready[1]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    const auto start = identify(pid_)->start_time;
    for (std::uint64_t younger = 0; younger <= start;) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
      younger = identify(child)->start_time;
      ::waitpid(child, nullptr, 0);
    }
  }
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[noreturn]] __attribute__((noinline)) static void hide(std::uint64_t from, std::uint64_t to,
                                                          int ready) {
    volatile char far_below_the_environment[128 << 10];
    far_below_the_environment[0] = 'x';
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    constexpr std::uint64_t kPage = 4096;
    const std::uint64_t begin = from & ~(kPage - 1);
    ::munmap(reinterpret_cast<void*>(begin), ((to + kPage - 1) & ~(kPage - 1)) - begin);
    (void)!::write(ready, const_cast<const char*>(far_below_the_environment), 1);
    for (;;) ::pause();
  }
  pid_t pid_ = -1;
};

// Limits this process to `free` more descriptors, as long as the object lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t free) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    // Unused numbers below the highest descriptor count as free, too.
    rlim_t top = 0;
    for (rlim_t found = 0; found < free; ++top)
      found += ::fcntl(static_cast<int>(top), F_GETFD) < 0 ? 1 : 0;
    const rlimit few{.rlim_cur = free == 0 ? 0 : top, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace muster::process
