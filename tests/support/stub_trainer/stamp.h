// Moments of main(), shared between the processes that are started and the one that waits for all
// of them: a file in memory,
//   u32 count of stamps made (a futex), u32 unused, then u64 CLOCK_MONOTONIC nanoseconds by rank (0
//   = not yet).
#pragma once

#include <cstdint>
#include <string>

namespace stub {

std::uint64_t monotonic_ns();
// The stub's side: best effort, a missing file is no reason not to run.
void stamp(const std::string& file, std::uint32_t rank, std::uint64_t at);

// The waiting side: makes the file for `ranks` stamps.
class StampBoard {
 public:
  StampBoard(const std::string& file, std::uint32_t ranks);
  StampBoard(const StampBoard&) = delete;
  StampBoard& operator=(const StampBoard&) = delete;
  ~StampBoard();
  void clear();
  // False: not all within the time.
  bool wait_for_all(int timeout_ms);
  [[nodiscard]] std::uint64_t last() const;

 private:
  std::uint32_t ranks_;
  void* memory_ = nullptr;
};

}  // namespace stub
