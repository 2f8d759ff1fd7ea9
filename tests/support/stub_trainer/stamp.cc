#include "tests/support/stub_trainer/stamp.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace stub {
namespace {

constexpr std::size_t kHead = 8;

std::size_t bytes_of(std::uint32_t ranks) { return kHead + 8 * static_cast<std::size_t>(ranks); }
std::atomic<std::uint32_t>& count_in(void* memory) {
  return *static_cast<std::atomic<std::uint32_t>*>(memory);
}
std::uint64_t* stamps_in(void* memory) {
  return reinterpret_cast<std::uint64_t*>(static_cast<char*>(memory) + kHead);
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void stamp(const std::string& file, std::uint32_t rank, std::uint64_t at) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  const off_t size = ::lseek(fd, 0, SEEK_END);
  void* memory = size >= static_cast<off_t>(bytes_of(rank + 1))
                     ? ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0)
                     : MAP_FAILED;
  ::close(fd);
  if (memory == MAP_FAILED) return;
  stamps_in(memory)[rank] = at;
  count_in(memory).fetch_add(1);
  ::syscall(SYS_futex, memory, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

StampBoard::StampBoard(const std::string& file, std::uint32_t ranks) : ranks_(ranks) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes_of(ranks))) == 0)
    memory_ = ::mmap(nullptr, bytes_of(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) ::close(fd);
  if (memory_ == nullptr || memory_ == MAP_FAILED) {
    std::perror(("making stamp file '" + file + "'").c_str());
    std::exit(1);
  }
}

StampBoard::~StampBoard() { ::munmap(memory_, bytes_of(ranks_)); }

void StampBoard::clear() { std::memset(memory_, 0, bytes_of(ranks_)); }

bool StampBoard::wait_for_all(int timeout_ms) {
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(timeout_ms) * 1'000'000U;
  for (;;) {
    const std::uint32_t seen = count_in(memory_).load();
    if (seen >= ranks_) return true;
    const std::uint64_t now = monotonic_ns();
    if (now >= end) return false;
    const timespec left{.tv_sec = static_cast<time_t>((end - now) / 1'000'000'000U),
                        .tv_nsec = static_cast<long>((end - now) % 1'000'000'000U)};
    ::syscall(SYS_futex, memory_, FUTEX_WAIT, seen, &left, nullptr, 0);
  }
}

std::uint64_t StampBoard::last() const {
  return *std::max_element(stamps_in(memory_), stamps_in(memory_) + ranks_);
}

}  // namespace stub
