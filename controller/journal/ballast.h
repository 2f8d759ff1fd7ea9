// The ballast: a file of allocated blocks next to the journal, which reserves disk space for facts.
// SqliteJournal owns it. The thread that calls the journal calls spend(), spend_early() and
// restore(); any thread may call the other functions.
//
// The journal deletes the ballast when a write meets a full disk, and makes it again when the disk
// has room.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/error.h"

namespace muster::journal {

class Ballast {
 public:
  // `size` 0 means no ballast. The disk counts as nearly full when fewer than `mark` bytes are free
  // in addition to the ballast.
  Ballast(const std::filesystem::path& dir, std::uint64_t size, std::uint64_t mark);

  // Call this before a start writes anything. If the disk has fewer than `wanted` free bytes, this
  // deletes the ballast of an earlier incarnation at once: a start, too, may use the space that is
  // reserved for facts.
  void spend_early(std::uint64_t wanted);
  // Makes the file if it is missing and the disk has room for both the file and the mark.
  // ResourceExhausted: the disk has no such room; the journal works without a ballast.
  Result<void> restore();
  // Gives the ballast's blocks back to the file system. Returns false if there are no blocks to
  // give back.
  bool spend();
  [[nodiscard]] bool there() const { return size_ == 0 || there_.load(std::memory_order_relaxed); }
  // Returns why the disk counts as nearly full; empty: the disk is not nearly full. There are three
  // reasons:
  // - less than the mark is free in addition to the ballast, which exists or is still to be made;
  // - almost no inodes are left;
  // - the free space cannot be read.
  //
  // Each call asks the file system anew, so the shortage ends as soon as there is room.
  [[nodiscard]] std::string shortage() const;

 private:
  std::filesystem::path dir_, file_;
  std::uint64_t size_, mark_;
  std::atomic<bool> there_ = false;
};

}  // namespace muster::journal
