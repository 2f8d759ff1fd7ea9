// What `muster run` and `muster watch` draw on a terminal: a block of a few lines that is redrawn in place. Pure: a picture of values; the
// command owns the terminal, the clock and the streams.
//
//   tiny-gpt  01hx…  running  attempt 2  4 ranks on n0 n1
//   ██████████████░░░░░░░░░░░░░░  152/300  51%  12.4 steps/s  ETA 12s
//   loss 2.3145  ▇▆▅▅▄▄▃▃▂▂▂▁▁▁  from 4.8121
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

// Eight heights; `columns` wide at most, neighbours averaged. NaN and infinities are drawn as '!'.
std::string sparkline(const std::vector<double>& values, std::size_t columns);
// A bar of `columns` cells, eighths of a cell resolved.
std::string progress_bar(double fraction, std::size_t columns);

class LiveView {
 public:
  void set_job(const v1::Job& job);
  void set_phase(v1::JobPhase phase, std::uint32_t attempt);
  void set_progress(const v1::Progress& progress, WallTime now);
  void add_loss(std::int64_t step, double loss);  // a step trained again replaces
  [[nodiscard]] std::vector<std::string> lines(const Style& style, std::size_t width, WallTime now) const;
  [[nodiscard]] const std::vector<LossPoint>& losses() const { return losses_; }
  // The whole loss curve as a small chart, `rows` high: what the run ends with.
  [[nodiscard]] std::vector<std::string> chart(const Style& style, std::size_t width, std::size_t rows) const;

 private:
  v1::Job job_;
  std::vector<LossPoint> losses_;                         // by step; a step trained again replaces
  std::deque<std::pair<WallTime, std::int64_t>> recent_;  // for steps/s
};

}  // namespace muster::render
