#include "tests/sim/timeline.h"

#include <algorithm>

namespace muster::sim {

void Timeline::at(Time when, Deed deed) {
  heap_.push_back({.when = std::max(when, now_), .order = order_++, .deed = std::move(deed)});
  std::ranges::push_heap(heap_, later);
}

bool Timeline::step() {
  if (heap_.empty()) return false;
  std::ranges::pop_heap(heap_, later);
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  entry.deed();
  return true;
}

void Actor::after(Time delay, Deed deed) {
  timeline_.after(delay, [this, incarnation = incarnation_, born = *incarnation_,
                          deed = std::move(deed)]() mutable {
    if (*incarnation != born) return;
    if (paused_) {
      deferred_.push_back(std::move(deed));
      return;
    }
    deed();
  });
}

void Actor::let_go() {
  paused_ = false;
  std::vector<Deed> due = std::move(deferred_);
  deferred_.clear();
  for (Deed& deed : due) now(std::move(deed));
}

}  // namespace muster::sim
