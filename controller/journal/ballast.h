// Room kept for facts: a file of allocated blocks beside the journal, given up when a write meets a full disk, made again when there is room.
// spend() and restore() belong to the journal's thread; low() may be asked from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "common/base/error.h"

namespace muster::journal {

class Ballast {
 public:
  // `size` 0: none. Below `mark` free bytes (beside the ballast) the disk counts as nearly full.
  Ballast(const std::filesystem::path& dir, std::uint64_t size, std::uint64_t mark);

  // Makes the file where it is missing and the disk has room for it and the mark. ResourceExhausted: it has not; the journal works without.
  Result<void> restore();
  // Gives its blocks back to the file system. False: there were none to give.
  bool spend();
  [[nodiscard]] bool there() const { return there_.load(std::memory_order_relaxed); }
  // Nearly full: less than the mark is free, or the ballast has been spent and not been made again.
  [[nodiscard]] bool low() const;

 private:
  [[nodiscard]] std::uint64_t free_bytes() const;

  std::filesystem::path dir_, file_;
  std::uint64_t size_, mark_;
  std::atomic<bool> there_ = false;
};

}  // namespace muster::journal
