// Outbox knows which facts were sent on this connection, and in what order the others may be sent.
// The Agent owns one and uses it on its loop. It does no I/O.
//
// Rules:
//
// - After a reconnect all facts are sent again.
// - An exit may wait for its evidence (`ready`).
// - A sweep waits for the exits of its run and for the last scan of its checkpoints (`scanned`).
// - No other fact waits.
// - A bad exit, the end of an auxiliary process, a start and a sweep are sent at once.
// - Exits that muster requested, or that are good, may be gathered for a few milliseconds.
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

// True if the code or the signal means failure and muster did not stop the rank.
[[nodiscard]] bool is_bad_exit(const v1::RankExited& exited);

class Outbox {
 public:
  using Ready = std::function<bool(const v1::RankExited&)>;

  void reconnected();  // clears what was sent; sequence numbers start again
  void forget(const RunKey& run);

  // Gathers what is new and ready among all facts of the run, oldest first. Returns true if a fact
  // that must not wait has been gathered.
  bool gather(const RunKey& run, const std::vector<v1::Fact>& facts, const Ready& ready,
              bool scanned = true);
  [[nodiscard]] bool empty() const { return gathered_.facts().empty(); }
  // Takes the oldest gathered facts, as many as one message holds, with the sequence number of the
  // last of them. The next call takes the rest.
  v1::Facts take();

  // approximate: a single fact is never cut, however long it is
  static constexpr std::size_t kMessageBytes = 4U << 20U;

 private:
  // kind of fact, rank, auxiliary process or checkpoint; with the run this is the natural key
  using Kind = std::tuple<int, std::uint32_t, std::string>;
  static Kind kind_of(const v1::Fact& fact);
  std::map<RunKey, std::set<Kind>> sent_;
  v1::Facts gathered_;
  std::uint64_t sequence_ = 0;
  bool urgent_ = false;
};

}  // namespace muster::agent
