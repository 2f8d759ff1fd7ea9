// How often the states of a progress bar are shown where each becomes a line of its own: the first,
// then one a second a log. The last is no state but the line, and always shown. One thread.
#pragma once

#include <chrono>
#include <map>

#include "client/commands/log_label.h"

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
