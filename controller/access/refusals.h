// Refusals writes refused calls to the controller's log: each text once, and a bounded number of
// them, so that nobody fills the log. main() of the controller owns it. Thread-safe.
#pragma once

#include <set>
#include <string>

#include "common/base/mutex.h"

namespace muster::controller {

class Refusals {
 public:
  static constexpr std::size_t kTextsMost = 1'000;

  void note(const std::string& text);

 private:
  Mutex mutex_;
  std::set<std::string> noted_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
