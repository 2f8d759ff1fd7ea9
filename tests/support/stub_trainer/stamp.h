// Times at which processes reach main(), in a file in memory that the started processes share with
// the process that waits for them. The waiting process owns the StampBoard. It runs on that
// process's one thread.
//
// u32 count of stamps made (a futex), u32 unused,
// then u64 CLOCK_MONOTONIC nanoseconds by rank (0 = not yet).
#pragma once

#include <cstdint>
#include <string>

namespace stub {

std::uint64_t monotonic_ns();
// The stub's side. Best effort: if the file is missing, the stub runs all the same.
void stamp(const std::string& file, std::uint32_t rank, std::uint64_t at);

// The waiting side: makes the file for `ranks` stamps.
class StampBoard {
 public:
  StampBoard(const std::string& file, std::uint32_t ranks);
  StampBoard(const StampBoard&) = delete;
  StampBoard& operator=(const StampBoard&) = delete;
  ~StampBoard();
  void clear();
  // Returns false if not all stamps were made in time.
  bool wait_for_all(int timeout_ms);
  [[nodiscard]] std::uint64_t last() const;

 private:
  std::uint32_t ranks_;
  void* memory_ = nullptr;
};

}  // namespace stub
