// The wake FIFO of a run directory: a FIFO by which the worker tells the agent that there is
// something
// new in `claim` or `events`. An inotify instance would tell it too, but a user has 128 of them for
// all programs together, and a node whose exits are not seen is worse than one whose logs are seen
// late.
//
// Both sides open it for reading and writing. So neither waits for the other to come, neither reads
// an end of file when the other dies, and a ring that nobody has heard yet stays in it. It carries
// no news itself: who hears it reads the files. Non-blocking throughout; one thread an object.
#pragma once

#include <optional>

#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::rundir {

class WakeFifo {
 public:
  // Nothing: there is none (an older agent made the directory, or its file system has no FIFOs).
  // Then the agent looks by itself now and then.
  static std::optional<WakeFifo> open(const RunLayout& run);

  [[nodiscard]] int fd() const { return fd_.get(); }  // readable: it was rung
  // A wake FIFO that is full has been rung.
  void ring() const;
  // Takes all rings so far. Before the files are read: a ring that comes later is then about what
  // the reading may have missed.
  void drain() const;

 private:
  explicit WakeFifo(io::UniqueFd fd) : fd_(std::move(fd)) {}
  io::UniqueFd fd_;
};

}  // namespace muster::rundir
