// Refusals writes refused calls to the controller's log: each text at most once an hour, and a
// bounded number of them within one, so that nobody fills the log. A text that is over for an hour
// makes room for another one. main() of the controller owns it. Thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::controller {

// `why`: OpenSSL's reason. It has no address: gRPC does not say whose handshake it was.
std::string failed_handshake_text(std::string_view why);

class Refusals {
 public:
  static constexpr std::size_t kTextsMost = 1'000;
  static constexpr Duration kWindow = std::chrono::hours(1);
  static constexpr Duration kSweptApart = std::chrono::minutes(1);

  explicit Refusals(const Clock& clock) : clock_(clock) {}
  void note(const std::string& text);

 private:
  bool due(const std::string& text, BootTime now) MUSTER_REQUIRES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, BootTime> noted_ MUSTER_GUARDED_BY(mutex_);  // when it was last written
  std::optional<BootTime> more_
      MUSTER_GUARDED_BY(mutex_);  // when it was written that there are more
  BootTime swept_ MUSTER_GUARDED_BY(mutex_){};
};

}  // namespace muster::controller
