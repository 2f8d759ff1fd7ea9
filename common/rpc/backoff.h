// Computes how long to wait before the next try. Each reconnect loop owns one, for example the
// agent's Link. It has no lock: its owner's thread supplies the seed and does the waiting.
//
// The time doubles from kReconnectMin to kReconnectMax. Each wait is drawn from the upper half of
// that time, so that a thousand agents of a freshly started controller do not arrive together.
//
// Why these numbers: a second after the controller listens again, all agents should be connected,
// however long it was away. An agent's next try comes within kReconnectMax of that moment. The
// other half second is left for connecting, Hello and the synced batches in which Hellos are
// registered.
//
// While the controller is away:
// - A waiting agent tries every 375 ms on average (drawn from 250 to 500), that is 2.7 times a
//   second. 64 agents make 170 tries/s, 2,000 agents 5,300/s.
// - A machine without a listener answers each try with one small packet from its kernel. On a unix
//   socket a try is a failed system call.
// - A try costs an agent 1.5 ms, which is 0.4 % of a core as long as the outage lasts.
// - A host that answers nothing is tried less often: each try takes up to 2 s.
//
// When the controller is back:
// - The agents arrive spread over those 500 ms.
// - An agent costs the controller about 1 ms (two streams, Hello, the first heartbeat).
// - 64 agents are connected half a second after listen, on two cores that are busy with other
//   things.
// - 2,000 agents are 4,000 connects/s and 2 s of CPU. Four cores have them all within the second.
//   With fewer cores the later ones wait in their connect; the queue of a listening socket has
//   space for 4,096.
//
// The usual ceiling of 2 s would save little of that, and every outage would last up to 2 s longer.
// The first tries are quicker because most losses are short.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include "common/base/time.h"

namespace muster::rpc {

inline constexpr Duration kReconnectMin = std::chrono::milliseconds(50);
inline constexpr Duration kReconnectMax = std::chrono::milliseconds(500);

class Backoff {
 public:
  explicit Backoff(std::uint64_t seed, Duration min = kReconnectMin, Duration max = kReconnectMax)
      : random_(seed), min_(min), max_(max), next_(min) {}

  Duration next() {
    const Duration top = next_;
    next_ = std::min(max_, next_ * 2);
    return std::max(min_, Duration(std::uniform_int_distribution<Duration::rep>(
                              top.count() / 2, top.count())(random_)));
  }
  void reset() { next_ = min_; }

 private:
  std::mt19937_64 random_;
  Duration min_, max_, next_;
};

}  // namespace muster::rpc
