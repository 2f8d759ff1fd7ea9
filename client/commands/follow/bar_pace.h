// A BarPace limits how often the states of a progress bar are printed where each state becomes a
// line. The Follower of follow.cc and the Printer of logs.cc own one each. One thread.
//
// It allows the first state, then one a second for each log. The last text of a bar is a normal
// line, not a state; it is always printed.
#pragma once

#include <chrono>
#include <map>

#include "client/commands/follow/log_label.h"

namespace muster::client {

class BarPace {
 public:
  static constexpr std::chrono::seconds kPause{1};

  [[nodiscard]] bool due(const LogLabel& log, std::chrono::steady_clock::time_point now) {
    const auto [found, first] = last_.try_emplace(log, now);
    if (!first && now - found->second < kPause) return false;
    found->second = now;
    return true;
  }

 private:
  std::map<LogLabel, std::chrono::steady_clock::time_point> last_;
};

}  // namespace muster::client
