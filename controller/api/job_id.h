// Job ids: 13 characters of Crockford's base32, lower case: 9 of time (milliseconds), 4 of chance.
// Sortable by submission; unique for ever: one source never gives an id twice, nor one that sorts
// before an earlier one. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::controller {

class JobIdSource {
 public:
  explicit JobIdSource(std::uint64_t seed) : random_(seed) {}
  JobId next(WallTime now);

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;
  // 45 bits of time, 20 of chance: 65; the top bit of time is not used before the year 2527
  std::uint64_t last_ = 0;
};

inline constexpr std::size_t kJobIdLength = 13;

}  // namespace muster::controller
