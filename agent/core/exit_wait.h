// ExitWait says how long the fact of a rank's exit waits for what the rank's log says. Plain
// values. RunReporting keeps one per ended rank.
//
// An exit waits a short time. The controller needs at once to know what broke the job or that a
// rank has ended. The evidence and the last step only help.
//
// An exit whose success is looked for decides the job. It waits for as long as the reader makes
// progress with the run's logs, however far behind the reader is. It gives up only when `apart`
// passes without a byte read.
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
  // True: it waits for the success.
  [[nodiscard]] bool of_success() const { return apart_ != Duration::zero(); }
  // The time of the next check, or the end of the wait.
  [[nodiscard]] BootTime until() const { return until_; }

 private:
  ExitWait(BootTime until, Duration apart, std::uint64_t read)
      : until_(until), apart_(apart), read_(read) {}
  BootTime until_{};
  Duration apart_{};
  std::uint64_t read_ = 0;
};

}  // namespace muster::agent
