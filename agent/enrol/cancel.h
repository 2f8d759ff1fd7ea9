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
  // Can be read from request() on (enrol::Ask::cancel).
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  io::UniqueFd event_;
};

}  // namespace muster::agent
