// Progress holds the latest step of every rank of one run, and the samples of the lowest rank that
// prints steps. PublishedRun (published_run.h) owns it and locks. Plain values.
//
// A loss that is no number (engine::nan_sign) counts as no loss, and the loss before it is not
// shown instead.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/base/time.h"
#include "common/engine/model/grammar.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr std::size_t kSamplesMost = 1000;  // in one reading, and waiting for one

// Merges a line into `latest`. A line may report the step without the total or the loss: then the
// known values stay.
void merge(engine::StepLine& latest, const engine::StepLine& line);

class Progress {
 public:
  // If the line has the same step as the rank's previous line, it completes that line's sample.
  // `mark` grows with every call; it is the caller's counter, shared with the shard lists.
  void step(std::uint32_t rank, const engine::StepLine& line, WallTime at, std::uint64_t mark);
  void loss_vanished(std::uint32_t rank);
  // Takes what an earlier incarnation of the agent knew. It counts as latest and makes no sample.
  void restore(std::uint32_t rank, const engine::StepLine& line);
  [[nodiscard]] const engine::StepLine* latest(std::uint32_t rank) const;
  [[nodiscard]] bool any() const { return !latest_.empty(); }

  // Sets the steps of the rank readings and adds the samples after `since`. Forgets older samples.
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
