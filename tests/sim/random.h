// The simulator's random numbers. World owns one, and scenario.cc makes more from the seed. An
// Rng runs on its history's one thread.
//
// The engine is from the standard library; the distributions are muster's own, so that a seed means
// the same history on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "tests/sim/timeline.h"

namespace muster::sim {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : engine_(seed) {}

  // 0 .. bound-1; the bias of the remainder does not matter here.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : engine_() % bound; }
  // lo .. hi, both included.
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(hi - lo + 1)));
  }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // Mostly short, sometimes long, as delays are.
  Time skewed(Time low, Time high) {
    const Time first = between(low, high), second = between(low, high), third = between(low, high);
    const Time smaller = first < second ? first : second;
    return smaller < third ? smaller : third;
  }
  template <class Container>
  auto& pick(Container& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster::sim
