#include "controller/core/horizon.h"

#include <algorithm>

namespace muster::core {

Horizon::Judgement Horizon::judge(BootTime now, const std::optional<BootTime>& first_left) {
  Judgement judgement{.until = now};
  if (first_left) judgement.until = std::min(judgement.until, *first_left);
  if (timer_due_ && !stall_until_) {
    if (const Duration late = now - *timer_due_; late > options_.stall_after) {
      stall_until_ = now + std::min(late, options_.wait_max);
      judgement.late = late;
    }
  }
  if (stall_until_) {
    if (now < *stall_until_) {
      judgement.until = std::min(judgement.until, judged_);
    } else {
      stall_until_.reset();
    }
  }
  judged_ = std::max(judged_, judgement.until);
  return judgement;
}

std::optional<BootTime> Horizon::next(std::optional<BootTime> wake_at) const {
  if (!stall_until_) return wake_at;
  return wake_at ? std::max(*wake_at, *stall_until_) : *stall_until_;
}

}  // namespace muster::core
