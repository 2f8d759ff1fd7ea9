// How long the fact of a rank's exit waits for what its log says. Pure values; owned by the agent's
// loop.
//
// An exit waits a moment: what broke the job, or that a rank has ended, is wanted now; its evidence
// and its last step only help. One whose success is looked for decides the job: it waits for as
// long as the reader gets on with the run's logs, however far behind it is, and gives up only when
// `apart` goes by without a byte read.
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace muster::agent {

class ExitWait {
 public:
  ExitWait() = default;  // waits for nothing
  static ExitWait at_most(BootTime now, Duration bound) {
    return ExitWait(now + bound, Duration::zero(), 0);
  }
  // `read`: bytes of the run's logs that have been read so far.
  static ExitWait while_read(BootTime now, Duration apart, std::uint64_t read) {
    return ExitWait(now + apart, apart, read);
  }

  void check(BootTime now, std::uint64_t read) {
    if (apart_ == Duration::zero() || now < until_ || read <= read_) return;
    read_ = read;
    until_ = now + apart_;
  }
  // Next look, or the end of it.
  [[nodiscard]] BootTime until() const { return until_; }

 private:
  ExitWait(BootTime until, Duration apart, std::uint64_t read)
      : until_(until), apart_(apart), read_(read) {}
  BootTime until_{};
  Duration apart_{};
  std::uint64_t read_ = 0;
};

}  // namespace muster::agent
