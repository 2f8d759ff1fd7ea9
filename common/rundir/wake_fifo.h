// A WakeFifo is the named pipe of a run directory by which the worker wakes the agent after a new
// record. The agent's host and the worker's event queue own one each. One thread at a time for each
// object; it never blocks.
//
// A wake-up means that `claim` or `events` has something new. An inotify instance could report it
// too, but a user has only 128 of them for all programs together. A node whose exits are not seen
// is worse than one whose logs are seen late.
//
// Both sides open the FIFO for reading and writing. So neither waits for the other side to open it,
// and neither reads an end of file when the other dies. A ring that nobody has read yet stays in
// the FIFO. A ring has no content: the reader then reads the files.
#pragma once

#include <optional>

#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::rundir {

class WakeFifo {
 public:
  // Returns nothing if there is no FIFO (the file system has none, or somebody removed it). Then
  // the agent checks the files from time to time.
  static std::optional<WakeFifo> open(const RunLayout& run);

  [[nodiscard]] int fd() const { return fd_.get(); }  // readable: the worker rang
  // A full FIFO already contains a ring, so a failed write is no error.
  void ring() const;
  // Discards all rings so far. Call it before you read the files: a later ring is then about what
  // the reading may have missed.
  void drain() const;

 private:
  explicit WakeFifo(io::UniqueFd fd) : fd_(std::move(fd)) {}
  io::UniqueFd fd_;
};

}  // namespace muster::rundir
