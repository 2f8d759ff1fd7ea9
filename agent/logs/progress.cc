#include "agent/logs/progress.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/proto/proto_time.h"

namespace muster::agent {
namespace {

// A line may contain any number; the result must fit the field of a sample.
std::uint32_t to_count(std::int64_t value) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
}

void fill_sample(v1::StepSample& sample, const engine::StepLine& line) {
  sample.set_step(line.step);
  if (line.has_loss) {
    sample.set_loss(line.loss);
    sample.set_loss_not_finite(false);
  } else if (engine::nan_sign(line)) {
    sample.clear_loss();  // of an earlier line with this step
    sample.set_loss_not_finite(true);
  }
  if (line.seconds > 0) sample.set_seconds(line.seconds);
  if (line.covers > 0) sample.set_covers(to_count(line.covers));
  if (line.epoch > 0) sample.set_epoch(to_count(line.epoch));
  if (line.has_learning_rate) sample.set_learning_rate(line.learning_rate);
  if (line.samples_per_second > 0) sample.set_samples_per_second(line.samples_per_second);
  if (line.tokens_per_second > 0) sample.set_tokens_per_second(line.tokens_per_second);
  if (line.loss_scale > 0) sample.set_scale(line.loss_scale);
}

}  // namespace

void merge(engine::StepLine& latest, const engine::StepLine& line) {
  latest.step = line.step;
  if (line.total > 0) latest.total = line.total;
  // the spec's total was too low: the training continues beyond it
  if (latest.total < latest.step) latest.total = 0;
  if (line.seconds > 0) latest.seconds = line.seconds;
  if (!line.has_loss && !engine::nan_sign(line)) return;
  latest.has_loss = line.has_loss;
  latest.loss = line.has_loss ? line.loss : 0;
  latest.loss_not_finite = !line.has_loss;
}

void Progress::step(std::uint32_t rank, const engine::StepLine& line, WallTime at,
                    std::uint64_t mark) {
  merge(latest_[rank], line);
  if (!speaks_ || rank < *speaks_) speaks_ = rank;
  if (rank != *speaks_) return;
  if (!samples_.empty() && samples_.back().sample.rank() == rank &&
      samples_.back().sample.step() == line.step) {
    samples_.back().mark = mark;  // it is sent once more
    return fill_sample(samples_.back().sample, line);
  }
  Kept& kept = samples_.emplace_back();
  kept.mark = mark;
  kept.sample.set_rank(rank);
  fill_sample(kept.sample, line);
  *kept.sample.mutable_at() = to_proto(at);
  if (samples_.size() > kSamplesMost) thin();
}

void Progress::loss_vanished(std::uint32_t rank) {
  const auto found = latest_.find(rank);
  if (found == latest_.end()) return;
  found->second.has_loss = false;
  found->second.loss_not_finite = true;
}

void Progress::restore(std::uint32_t rank, const engine::StepLine& line) {
  merge(latest_[rank], line);
}

const engine::StepLine* Progress::latest(std::uint32_t rank) const {
  const auto found = latest_.find(rank);
  return found == latest_.end() ? nullptr : &found->second;
}

void Progress::thin() {
  // Drops every second sample of the older half: the curve keeps its shape, and its newest part
  // keeps every point.
  std::deque<Kept> left;
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    if (at >= samples_.size() / 2 || at % 2 == 0) left.push_back(std::move(samples_[at]));
  }
  samples_ = std::move(left);
}

void Progress::fill(v1::AttemptReading& reading, std::uint64_t since) {
  for (v1::RankReading& rank : *reading.mutable_ranks()) {
    const engine::StepLine* line = latest(rank.rank());
    if (!line) continue;
    if (line->step >= 0) rank.set_step(line->step);
    rank.set_total(line->total);
    if (line->has_loss) rank.set_loss(line->loss);
    rank.set_loss_not_finite(line->loss_not_finite);
  }
  while (!samples_.empty() && samples_.front().mark <= since) samples_.pop_front();
  for (const Kept& kept : samples_) *reading.add_samples() = kept.sample;
}

}  // namespace muster::agent
