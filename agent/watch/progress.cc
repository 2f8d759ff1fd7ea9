#include "agent/watch/progress.h"

#include <utility>

namespace muster::agent {
namespace {

// A line may tell the step without the total or the loss: what is known stays.
void merge(engine::StepLine& latest, const engine::StepLine& line) {
  latest.step = line.step;
  if (line.total > 0) latest.total = line.total;
  if (line.seconds > 0) latest.seconds = line.seconds;
  latest.has_loss = latest.has_loss || line.has_loss;
  if (line.has_loss) latest.loss = line.loss;
}

}  // namespace

void Progress::step(std::uint32_t rank, const engine::StepLine& line, WallTime at, std::uint64_t mark) {
  merge(latest_[rank], line);
  if (!speaks_ || rank < *speaks_) speaks_ = rank;
  if (rank != *speaks_) return;
  Kept& kept = samples_.emplace_back();
  kept.mark = mark;
  kept.sample.set_rank(rank);
  kept.sample.set_step(line.step);
  kept.sample.set_loss(line.loss);
  kept.sample.set_has_loss(line.has_loss);
  kept.sample.set_seconds(line.seconds);
  const auto since_epoch = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  kept.sample.mutable_at()->set_seconds(seconds.count());
  kept.sample.mutable_at()->set_nanos(static_cast<std::int32_t>((since_epoch - seconds).count()));
  if (samples_.size() > kSamplesMost) thin();
}

void Progress::restore(std::uint32_t rank, const engine::StepLine& line) { merge(latest_[rank], line); }

const engine::StepLine* Progress::latest(std::uint32_t rank) const {
  const auto found = latest_.find(rank);
  return found == latest_.end() ? nullptr : &found->second;
}

void Progress::thin() {
  // Every second one of the older half goes: the curve keeps its shape, its newest part every point.
  std::deque<Kept> left;
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    if (at >= samples_.size() / 2 || at % 2 == 0) left.push_back(std::move(samples_[at]));
  }
  samples_ = std::move(left);
}

void Progress::fill(v1::AttemptReading& reading, std::uint64_t since) {
  for (v1::RankReading& rank : *reading.mutable_ranks()) {
    const engine::StepLine* line = latest(rank.rank());
    rank.set_step(line ? line->step : -1);
    if (!line) continue;
    rank.set_total(line->total);
    rank.set_loss(line->loss);
    rank.set_has_loss(line->has_loss);
  }
  while (!samples_.empty() && samples_.front().mark <= since) samples_.pop_front();
  for (const Kept& kept : samples_) *reading.add_samples() = kept.sample;
}

}  // namespace muster::agent
