// JobIdSource makes job ids. JobService owns one. It is thread-safe.
//
// An id has 13 characters of Crockford's base32 in lower case: 9 of time (milliseconds), and 4
// random ones. Ids sort by submission and are unique for ever. One source never gives an id twice,
// nor one that sorts before an earlier one.
#pragma once

#include <cstdint>
#include <random>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::controller {

class JobIdSource {
 public:
  explicit JobIdSource(std::uint64_t seed) : random_(seed) {}
  JobId next(WallTime now);

 private:
  Mutex mutex_;
  std::mt19937_64 random_ MUSTER_GUARDED_BY(mutex_);
  // 45 bits of time and 20 random bits: 65. The top bit of time is not used before the year 2527.
  std::uint64_t last_ MUSTER_GUARDED_BY(mutex_) = 0;
};

inline constexpr std::size_t kJobIdLength = 13;

}  // namespace muster::controller
