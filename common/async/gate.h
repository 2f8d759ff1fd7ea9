// A Gate counts operations in progress, so that an owner can stop in order. The agent's Link owns
// one. Thread-safe.
//
// A caller calls enter() before work that outlives the caller, and leave() when the work is done.
// close() refuses new entries. wait() blocks until the last entry has left.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/assert.h"
#include "common/base/mutex.h"

namespace muster::async {

class Gate {
 public:
  Gate() = default;
  ~Gate() { MUSTER_ASSERT(inside_ == 0, "a gate was destroyed with somebody inside"); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Returns false when the gate is closed; then the caller does not begin.
  [[nodiscard]] bool enter() {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void leave() {
    const MutexLock lock(mutex_);
    MUSTER_ASSERT(inside_ > 0, "left a gate that nobody entered");
    if (--inside_ == 0) empty_.notify_all();
  }
  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  void wait() {
    const MutexLock lock(mutex_);
    while (inside_ != 0) empty_.wait(mutex_);
  }
  [[nodiscard]] std::uint64_t inside() const {
    const MutexLock lock(mutex_);
    return inside_;
  }

 private:
  mutable Mutex mutex_;
  CondVar empty_;
  std::uint64_t inside_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::async
