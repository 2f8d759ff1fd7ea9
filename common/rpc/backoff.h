// How long to wait before the next try: doubles from kReconnectMin to kReconnectMax, each drawn
// from its upper half, so that a thousand agents of a controller that was just started do not
// arrive together. Pure: the caller brings the seed and does the waiting.
//
// Why these numbers. However long a controller was away, an agent's next try comes within
// kReconnectMax of the moment it listens again; all agents are to be attached a second after that
// moment. Half a second leaves the other half for connecting, Hello and the synced batches in which
// Hellos are registered.
//   while it is away   a waiting agent tries every 375 ms on average (drawn from 250 to 500), 2.7
//                      times a second: 64 agents 170 tries/s, 2,000 agents 5,300/s. A machine
//                      without a listener answers each with one small packet from its kernel; on a
//                      unix socket it is a failed system call. A try costs an agent 1.5 ms, 0.4 %
//                      of a core as long as the outage lasts. A host that answers nothing is tried
//                      less often: each try takes up to 2 s.
//   when it is back    the agents arrive spread over those 500 ms. An agent costs the controller
//                      about 1 ms (two streams, Hello, the first heartbeat): 64 agents are attached
//                      half a second after listen on two cores that are busy with other things.
//                      2,000 are 4,000 connects/s and 2 s of CPU: four cores have them all within
//                      the second; with fewer the later ones wait in their connect, of which the
//                      queue of a listening socket holds 4,096.
// A ceiling of 2 s, as is usual, spares little of that and costs every outage up to 2 s. The first
// tries are quicker because most losses are short.
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
