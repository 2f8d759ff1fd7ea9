// A LiveView formats what `muster run` and `muster watch` draw on a terminal: a block of a few
// lines that is redrawn in place. The Follower of client/commands/follow/follow.cc owns one. It
// only formats values, on that command's thread; the command owns the terminal, the clock and the
// streams.
//
//   tiny-gpt  running  attempt 2  1 restart  4 ranks on n0 n1  1m12s
//   ██████████████░░░░░░░░░░░░░░  152/300  51%  12.4 steps/s  ETA 12s
//   loss 2.3145  ▇▆▅▅▄▄▃▃▂▂▂▁▁▁  from 4.8121
//   checkpoint of step 140, 3s ago  last step 0s ago
//
// From a break until the next attempt's first step, no number of the broken attempt is shown:
//
//   restarting, from step 140, 1.2s
//
// On a narrow terminal, fields that do not fit go into the next row.
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

// Draws values in eight heights, at most `columns` wide; neighbours are averaged. NaN and
// infinities become '!'.
std::string sparkline(const std::vector<double>& values, std::size_t columns);
// Draws a bar of `columns` cells with a resolution of an eighth of a cell.
std::string progress_bar(double fraction, std::size_t columns);

class LiveView {
 public:
  void set_job(const v1::Job& job);
  void set_phase(v1::JobPhase phase, std::uint32_t attempt);
  // Ignores a reading of an earlier attempt.
  void set_progress(const v1::Progress& progress, WallTime now);
  void add_loss(std::int64_t step, double loss);  // replaces the loss of a repeated step
  [[nodiscard]] std::vector<std::string> lines(const Style& style, std::size_t width,
                                               WallTime now) const;
  [[nodiscard]] const std::vector<LossPoint>& losses() const { return losses_; }
  // Returns the whole loss curve as a small chart, `rows` high. A run ends with this chart.
  [[nodiscard]] std::vector<std::string> chart(const Style& style, std::size_t width,
                                               std::size_t rows) const;

 private:
  [[nodiscard]] bool has_step() const;
  [[nodiscard]] std::string restarting(WallTime now) const;  // empty: it is not restarting
  // steps a second; 0: not known, or no steps arrive
  [[nodiscard]] double rate(WallTime now) const;
  [[nodiscard]] Duration step_age(WallTime now) const;
  void add_progress(std::vector<std::string>& rows, const Style& style, std::size_t width,
                    WallTime now) const;
  void add_loss_row(std::vector<std::string>& rows, const Style& style, std::size_t width,
                    bool now_known) const;

  v1::Job job_;
  std::vector<LossPoint> losses_;                         // by step; a repeated step replaces
  std::deque<std::pair<WallTime, std::int64_t>> recent_;  // for steps/s
};

}  // namespace muster::render
