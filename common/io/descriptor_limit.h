// The limit of open descriptors of this process, and a budget for optional ones. The functions act
// on the process; the agent's FileWatch creates the budget and shares it with its log files. Any
// thread.
//
// The soft limit (1,024 by custom) exists for programs that use select(2). A daemon with hundreds
// of streams and logs raises its own limit. Its child processes inherit that limit. A rank's limit
// belongs to its job; the rank's worker sets it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace muster::io {

// Raises the soft limit to the hard limit, best effort. If that is still too few, a later open
// fails with its own error.
void raise_descriptor_limit();

// Returns the soft limit, or SIZE_MAX if there is none.
std::size_t descriptor_limit();

// Returns what a daemon logs at its start when the limit is below `wanted`: "at most 64 descriptors
// may be open in this process, ...". Returns an empty text if the limit suffices.
std::string descriptors_missing(std::size_t wanted);

// A budget of descriptors that stay open only for speed. A caller without a share opens its file
// anew each time. Any thread.
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
