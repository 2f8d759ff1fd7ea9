// Cancel ends the waits of a thread that asks at the enrolment port. Whoever starts the thread owns
// it. Thread-safe.
#pragma once

#include "common/base/time.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class Cancel {
 public:
  Cancel();
  void request();
  [[nodiscard]] bool requested() const { return wait(Duration::zero()); }
  // Returns true as soon as it is requested, and false after `most`.
  [[nodiscard]] bool wait(Duration most) const;
  // Ends the present or the next wait_or_nudge(), once.
  void nudge();
  // As wait(), and returns false at a nudge, too.
  [[nodiscard]] bool wait_or_nudge(Duration most) const;
  // Can be read from request() on (enrol::Ask::cancel).
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  io::UniqueFd event_;
  io::UniqueFd nudge_;
};

}  // namespace muster::agent
