// What `muster run` and `muster watch` draw on a terminal: a block of a few lines that is redrawn
// in place. Pure: a picture of values; the command owns the terminal, the clock and the streams.
//
//   tiny-gpt  running  attempt 2  1 restart  4 ranks on n0 n1  1m12s
//   ██████████████░░░░░░░░░░░░░░  152/300  51%  12.4 steps/s  ETA 12s
//   loss 2.3145  ▇▆▅▅▄▄▃▃▂▂▂▁▁▁  from 4.8121
//   checkpoint of step 140, 3s ago  last step 0s ago
//
// From a break until the next attempt's first step no number of the broken one is shown:
//
//   restarting, from step 140, 1.2s
//
// On a narrow terminal what does not fit stands in the next row.
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
  // One of an earlier attempt says nothing any more.
  void set_progress(const v1::Progress& progress, WallTime now);
  void add_loss(std::int64_t step, double loss);  // a step trained again replaces
  [[nodiscard]] std::vector<std::string> lines(const Style& style, std::size_t width,
                                               WallTime now) const;
  [[nodiscard]] const std::vector<LossPoint>& losses() const { return losses_; }
  // The whole loss curve as a small chart, `rows` high: what the run ends with.
  [[nodiscard]] std::vector<std::string> chart(const Style& style, std::size_t width,
                                               std::size_t rows) const;

 private:
  [[nodiscard]] bool has_step() const;
  [[nodiscard]] std::string restarting(WallTime now) const;  // empty: it is not
  // steps a second; 0: not known, or none come
  [[nodiscard]] double rate(WallTime now) const;
  [[nodiscard]] Duration step_age(WallTime now) const;
  void add_progress(std::vector<std::string>& rows, const Style& style, std::size_t width,
                    WallTime now) const;
  void add_loss_row(std::vector<std::string>& rows, const Style& style, std::size_t width,
                    bool now_known) const;

  v1::Job job_;
  std::vector<LossPoint> losses_;                         // by step; a step trained again replaces
  std::deque<std::pair<WallTime, std::int64_t>> recent_;  // for steps/s
};

}  // namespace muster::render
