// How long to wait before the next try: doubles from 50 ms to 2 s, each drawn from its upper half, so that a thousand agents of a controller that
// was just started do not arrive together. Pure: the caller brings the seed and does the waiting.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include "common/base/time.h"

namespace muster::rpc {

class Backoff {
 public:
  explicit Backoff(std::uint64_t seed, Duration min = std::chrono::milliseconds(50), Duration max = std::chrono::seconds(2))
      : random_(seed), min_(min), max_(max), next_(min) {}

  Duration next() {
    const Duration top = next_;
    next_ = std::min(max_, next_ * 2);
    return std::max(min_, Duration(std::uniform_int_distribution<Duration::rep>(top.count() / 2, top.count())(random_)));
  }
  void reset() { next_ = min_; }

 private:
  std::mt19937_64 random_;
  Duration min_, max_, next_;
};

}  // namespace muster::rpc
