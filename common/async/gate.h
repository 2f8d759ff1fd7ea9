// A Gate counts operations in progress, so that an owner can stop in order. The agent's Link owns
// one. Thread-safe.
//
// A caller calls enter() before work that outlives the caller, and leave() when the work is done.
// close() refuses new entries. wait() blocks until the last entry has left.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "common/base/assert.h"

namespace muster::async {

class Gate {
 public:
  Gate() = default;
  ~Gate() { MUSTER_ASSERT(inside_ == 0, "a gate was destroyed with somebody inside"); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Returns false when the gate is closed; then the caller does not begin.
  [[nodiscard]] bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    MUSTER_ASSERT(inside_ > 0, "left a gate that nobody entered");
    if (--inside_ == 0) empty_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [this] { return inside_ == 0; });
  }
  [[nodiscard]] std::uint64_t inside() const {
    const std::lock_guard lock(mutex_);
    return inside_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::uint64_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace muster::async
