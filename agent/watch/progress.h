// What one run's logs have said of progress, ready for heartbeats: the latest step of every rank,
// and
// the samples of the lowest rank that prints steps. Pure values; its owner (Watch) locks. A loss
// that is no number any more (engine::nan_sign) is none, and the one before it is not shown in its
// place.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/base/time.h"
#include "common/engine/grammar.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr std::size_t kSamplesMost = 1000;  // of a reading, and of what waits for one

// A line may tell the step without the total or the loss: what is known stays.
void merge(engine::StepLine& latest, const engine::StepLine& line);

class Progress {
 public:
  // Of the same step as the rank's line before: the sample of that one becomes fuller. `mark` grows
  // with every call (the caller's own counter, shared with shard lists).
  void step(std::uint32_t rank, const engine::StepLine& line, WallTime at, std::uint64_t mark);
  void loss_vanished(std::uint32_t rank);
  // What an earlier life of the agent knew: counts as latest, makes no sample.
  void restore(std::uint32_t rank, const engine::StepLine& line);
  [[nodiscard]] const engine::StepLine* latest(std::uint32_t rank) const;
  [[nodiscard]] bool any() const { return !latest_.empty(); }

  // Adds rank readings' steps and the samples after `since`; forgets those up to it.
  void fill(v1::AttemptReading& reading, std::uint64_t since);

 private:
  struct Kept {
    std::uint64_t mark = 0;
    v1::StepSample sample;
  };
  void thin();
  std::map<std::uint32_t, engine::StepLine> latest_;
  std::optional<std::uint32_t> speaks_;
  std::deque<Kept> samples_;
};

}  // namespace muster::agent
