// How many descriptors this process may have open. The soft limit (1,024 by custom) is there for
// programs that use select(2): a daemon with hundreds of streams and logs raises its own. What it
// starts inherits that; a rank's limit is its job's, set by its worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace muster::io {

// The soft limit up to the hard one. Best effort: whoever then has too few meets the error of an
// open.
void raise_descriptor_limit();

// The soft limit; SIZE_MAX: there is none.
std::size_t descriptor_limit();

// What a daemon says at its start where the limit is below what it works well with: "at most 64
// descriptors may be open here, ..."; empty: it is not.
std::string descriptors_missing(std::size_t wanted);

// Descriptors that are kept only to be quicker, so many of them and no more: whoever gets none
// opens his file anew each time. Any thread.
class DescriptorBudget {
 public:
  explicit DescriptorBudget(std::size_t most) : left_(static_cast<std::ptrdiff_t>(most)) {}
  bool take() {
    if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
    give_back();
    return false;
  }
  void give_back() { left_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::ptrdiff_t> left_;
};

}  // namespace muster::io
