// Horizon decides until when a turn may judge deadlines. The turn's driver owns it and uses it on
// one thread. Pure.
//
// propose() must judge only at a moment for which the inbox has been drained. Otherwise a slow disk
// or a starved controller would make nodes seem silent. So the horizon is
//
//   the arrival of the first item that is left over, if the turn does not take all items
//   after a stall of this process, the moment before the stall, until the network's threads have
//     had as long again to deliver what waited
//
// A stall is known by the wake-up timer, which fired late.
#pragma once

#include <optional>

#include "common/base/time.h"

namespace muster::core {

class Horizon {
 public:
  struct Options {
    Duration stall_after = std::chrono::milliseconds(100);
    Duration wait_max = std::chrono::seconds(1);
  };

  explicit Horizon(Options options) : options_(options) {}

  // The wake-up timer is armed for `due`. Nothing: it is not armed, or its delay means nothing.
  void set_timer(std::optional<BootTime> due) { timer_due_ = due; }
  [[nodiscard]] const std::optional<BootTime>& timer() const { return timer_due_; }

  struct Judgement {
    BootTime until;
    std::optional<Duration> late = {};  // a stall was found, and the timer was late by so much
  };
  // At the begin of a turn. `first_left`: the arrival of the first item that waits for the next.
  Judgement judge(BootTime now, const std::optional<BootTime>& first_left);
  // When the next turn is due, if propose() asks for `wake_at`: not before a stall's wait is over,
  // and then even if propose() asks for nothing.
  [[nodiscard]] std::optional<BootTime> next(std::optional<BootTime> wake_at) const;

 private:
  Options options_;
  BootTime judged_{};  // until when deadlines were judged
  std::optional<BootTime> timer_due_;
  std::optional<BootTime> stall_until_;
};

}  // namespace muster::core
