// Room kept for facts: a file of allocated blocks beside the journal, given up when a write meets a
// full disk, made again when there is room. spend(), spend_early() and restore() belong to the
// journal's thread; the rest may be asked from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/error.h"

namespace muster::journal {

class Ballast {
 public:
  // `size` 0: none. Below `mark` free bytes (beside the ballast) the disk counts as nearly full.
  Ballast(const std::filesystem::path& dir, std::uint64_t size, std::uint64_t mark);

  // Before a start writes anything: of a disk with less than `wanted` free bytes an earlier life's
  // ballast is spent at once, for it is room for facts like any.
  void spend_early(std::uint64_t wanted);
  // Makes the file where it is missing and the disk has room for it and the mark.
  // ResourceExhausted: it has not; the journal works without.
  Result<void> restore();
  // Gives its blocks back to the file system. False: there were none to give.
  bool spend();
  [[nodiscard]] bool there() const { return size_ == 0 || there_.load(std::memory_order_relaxed); }
  // Why the disk counts as nearly full: less than the mark is free beside the ballast, made or
  // still to be made; hardly an inode is; or nobody can tell. Asked of the disk each time, so that
  // it is over as soon as there is room. Empty: it does not.
  [[nodiscard]] std::string shortage() const;

 private:
  std::filesystem::path dir_, file_;
  std::uint64_t size_, mark_;
  std::atomic<bool> there_ = false;
};

}  // namespace muster::journal
