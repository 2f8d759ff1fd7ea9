// Which facts this connection has been told, and in what order the rest may go. Pure values; owned
// by the agent's loop.
//
// Rules: after a reconnect everything is told again. An exit may wait for its evidence (`ready`); a
// sweep waits for its run's exits, and for the last look at its checkpoints (`scanned`); nothing
// else waits for anything. A bad exit, an auxiliary process's end, a start and a sweep go at once;
// exits
// that muster asked for, or that are well, may be gathered for a few milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/core/reconcile.h"

namespace muster::agent {

// Code or signal says failure, and it was not muster's stop.
[[nodiscard]] bool is_bad_exit(const v1::RankExited& exited);

class Outbox {
 public:
  using Ready = std::function<bool(const v1::RankExited&)>;

  void reconnected();  // nothing is told any more, sequence numbers start anew
  void forget(const RunKey& run);

  // Takes up what is new and ready among all facts of the run, oldest first. True: something that
  // must not wait is among what is gathered.
  bool gather(const RunKey& run, const std::vector<v1::Fact>& facts, const Ready& ready,
              bool scanned = true);
  [[nodiscard]] bool empty() const { return gathered_.facts().empty(); }
  // The oldest of what was gathered, with the sequence number of its last: as many as a message
  // holds. What is left is taken next.
  v1::Facts take();

  // about: a single fact may be as long as it is
  static constexpr std::size_t kMessageBytes = 4U << 20U;

 private:
  // which fact, which rank, which auxiliary process: with the run, the natural key
  using Kind = std::tuple<int, std::uint32_t, std::string>;
  std::map<RunKey, std::set<Kind>> sent_;
  v1::Facts gathered_;
  std::uint64_t sequence_ = 0;
  bool urgent_ = false;
};

}  // namespace muster::agent
