// Whether a start is still wanted: an event that happens once. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

#include "common/io/unique_fd.h"

namespace muster::agent {

class Abandoned {
 public:
  // Where the process can have no more descriptors, waits last their whole time.
  Abandoned();
  void set();
  [[nodiscard]] bool is_set() const;
  // Returns when it happens, or after this time. True: it has happened.
  bool wait(std::chrono::milliseconds time) const;
  // Readable from then on; -1: there is none.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  io::UniqueFd fd_;
  std::atomic<bool> is_set_ = false;
};

}  // namespace muster::agent
