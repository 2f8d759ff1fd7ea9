#include "client/render/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "client/render/text.h"

namespace muster::render {
namespace {

constexpr std::array<const char*, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// Neighbours averaged so that at most `columns` values stay.
std::vector<double> squeeze(const std::vector<double>& values, std::size_t columns) {
  if (values.size() <= columns) return values;
  std::vector<double> out;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t first = i * values.size() / columns;
    const std::size_t last = std::max(first + 1, (i + 1) * values.size() / columns);
    double sum = 0;
    for (std::size_t k = first; k < last; ++k) sum += values[k];
    out.push_back(sum / static_cast<double>(last - first));
  }
  return out;
}

std::pair<double, double> range_of(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return {low, high};
}

std::string node_list(const v1::Attempt& attempt) {
  std::string out;
  constexpr int kShown = 4;
  for (int i = 0; i < attempt.nodes_size() && i < kShown; ++i) out += (i > 0 ? " " : "") + printable(attempt.nodes(i).node());
  if (attempt.nodes_size() > kShown) out += fmt::format(" and {} more", attempt.nodes_size() - kShown);
  return out;
}

}  // namespace

std::string sparkline(const std::vector<double>& values, std::size_t columns) {
  const std::vector<double> shown = squeeze(values, columns);
  const auto [low, high] = range_of(shown);
  std::string out;
  for (const double value : shown) {
    if (!std::isfinite(value)) {
      out += "!";
      continue;
    }
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    out += kHeights[static_cast<std::size_t>(std::clamp(share * 7.0 + 0.5, 0.0, 7.0))];
  }
  return out;
}

std::string progress_bar(double fraction, std::size_t columns) {
  const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const auto eighths = static_cast<std::size_t>(share * static_cast<double>(columns) * 8.0 + 0.5);
  std::string out;
  for (std::size_t cell = 0; cell < columns; ++cell) {
    const std::size_t fill = std::min<std::size_t>(8, eighths > cell * 8 ? eighths - cell * 8 : 0);
    out += fill == 0 ? "░" : kEighths[fill];
  }
  return out;
}

void LiveView::set_job(const v1::Job& job) { job_ = job; }

void LiveView::set_phase(v1::JobPhase phase, std::uint32_t attempt) {
  if (phase != v1::JOB_PHASE_UNSPECIFIED) job_.set_phase(phase);
  if (attempt > job_.attempt()) {
    job_.set_attempt(attempt);
    recent_.clear();
  }
}

void LiveView::set_progress(const v1::Progress& progress, WallTime now) {
  if (progress.step() < 0) return;
  *job_.mutable_progress() = progress;
  if (recent_.empty() || recent_.back().second != progress.step()) {
    if (!recent_.empty() && progress.step() < recent_.back().second) recent_.clear();
    recent_.emplace_back(now, progress.step());
    while (recent_.size() > 2 && now - recent_.front().first > std::chrono::seconds(10)) recent_.pop_front();
  }
  if (progress.has_loss()) add_loss(progress.step(), progress.loss());
}

void LiveView::add_loss(std::int64_t step, double loss) {
  const auto at = std::ranges::lower_bound(losses_, step, {}, &LossPoint::step);
  if (at != losses_.end() && at->step == step) {
    at->loss = loss;
  } else {
    losses_.insert(at, {step, loss});
  }
}

std::vector<std::string> LiveView::lines(const Style& style, std::size_t width, WallTime now) const {
  std::vector<std::string> out;
  std::string head = style.paint(Tint::Bold, printable(job_.spec().name())) + "  " + style.paint(phase_tint(job_.phase()), phase_text(job_.phase()));
  if (job_.attempt() > 0) head += fmt::format("  attempt {}", job_.attempt());
  if (job_.attempts_size() > 0) {
    const v1::Attempt& attempt = job_.attempts(job_.attempts_size() - 1);
    std::uint32_t ranks = 0;
    for (const auto& node : attempt.nodes()) ranks += node.rank_count();
    head += fmt::format("  {} rank{} on {}", ranks, ranks == 1 ? "" : "s", node_list(attempt));
  }
  out.push_back(clip(head, width));

  const v1::Progress& progress = job_.progress();
  if (progress.step() > 0 || progress.has_loss()) {
    double rate = 0;
    if (recent_.size() >= 2) {
      const double seconds = static_cast<double>((recent_.back().first - recent_.front().first).count()) / 1e9;
      if (seconds > 0.2) rate = static_cast<double>(recent_.back().second - recent_.front().second) / seconds;
    }
    if (rate <= 0 && progress.step_seconds() > 0) rate = 1.0 / progress.step_seconds();
    std::string tail;
    if (progress.total() > 0) {
      tail = fmt::format("  {}/{}  {}%", progress.step(), progress.total(), progress.step() * 100 / progress.total());
      if (rate > 0) {
        const double left = static_cast<double>(std::max<std::int64_t>(0, progress.total() - progress.step())) / rate;
        tail += fmt::format("  {:.1f} steps/s  ETA {}", rate, duration_text(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left))));
      }
      const std::size_t cells = width > tail.size() + 12 ? std::min<std::size_t>(40, width - tail.size() - 2) : 10;
      out.push_back(
          clip(style.paint(Tint::Good, progress_bar(static_cast<double>(progress.step()) / static_cast<double>(progress.total()), cells)) + tail, width));
    } else {
      out.push_back(clip(fmt::format("step {}{}", progress.step(), rate > 0 ? fmt::format("  {:.1f} steps/s", rate) : ""), width));
    }
  } else if (!is_final(job_.phase()) && job_.has_submitted_at()) {
    out.push_back(style.paint(Tint::Dim, "no step yet, " + duration_text(now - wall_time(job_.submitted_at())) + " since submission"));
  }
  if (!losses_.empty()) {
    std::vector<double> values;
    values.reserve(losses_.size());
    for (const LossPoint& point : losses_) values.push_back(point.loss);
    const std::string from = fmt::format("  from {:.4f}", values.front());
    out.push_back(clip(fmt::format("loss {:.4f}  ", progress.loss()) +
                           style.paint(Tint::Accent, sparkline(values, std::min<std::size_t>(48, width > 34 ? width - 30 : 8))) + from,
                       width));
  }
  return out;
}

std::vector<std::string> LiveView::chart(const Style& style, std::size_t width, std::size_t rows) const {
  if (losses_.size() < 2 || rows == 0) return {};
  std::vector<double> values;
  for (const LossPoint& point : losses_) values.push_back(point.loss);
  const std::size_t columns = std::min<std::size_t>(72, width > 20 ? width - 12 : 8);
  const std::vector<double> shown = squeeze(values, columns);
  const auto [low, high] = range_of(shown);
  if (!std::isfinite(low)) return {};
  const double span = high > low ? high - low : 1.0;
  std::vector<std::string> out;
  for (std::size_t row = 0; row < rows; ++row) {
    const double floor = high - span * static_cast<double>(row + 1) / static_cast<double>(rows);
    std::string line = row == 0 ? fmt::format("{:>8.4f} ┤", high) : row + 1 == rows ? fmt::format("{:>8.4f} ┤", low) : std::string(8, ' ') + " │";
    std::string body;
    for (const double value : shown) {
      const double cell = span / static_cast<double>(rows);
      const double fill = std::isfinite(value) ? (value - floor) / cell : 0;
      if (fill <= 0) {
        body += row + 1 == rows ? kHeights[0] : " ";
      } else if (fill >= 1) {
        body += "█";
      } else {
        body += kHeights[static_cast<std::size_t>(std::clamp(fill * 8.0, 0.0, 7.0))];
      }
    }
    out.push_back(line + style.paint(Tint::Accent, body));
  }
  out.push_back(fmt::format("{:>9}└{}", "", fmt::format("step {} to {}", losses_.front().step, losses_.back().step)));
  return out;
}

}  // namespace muster::render
