#include "client/render/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

constexpr std::array<const char*, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

constexpr std::size_t kBarLeast = 16, kBarMost = 40, kSparkLeast = 8, kSparkMost = 48;
constexpr std::size_t kBlanks = 2;                   // between fields
constexpr auto kStalled = std::chrono::seconds(10);  // without a step: then no rate is shown
// or this many times the longest recent gap between two steps
constexpr int kGapsStalled = 4;

// Puts fields next to each other, as many in a row as fit.
void pack(std::vector<std::string>& rows, const std::vector<std::string>& fields,
          std::size_t width) {
  std::size_t used = width + 1;  // of the current row; the first field starts one
  for (const std::string& field : fields) {
    const std::size_t columns = display_width(field);
    if (used + kBlanks + columns > width) {
      rows.push_back(clip(field, width));
      used = columns;
    } else {
      rows.back() += std::string(kBlanks, ' ') + field;
      used += kBlanks + columns;
    }
  }
}

// Like duration_text(), but below a minute always whole seconds (or always tenths), because people
// watch the number grow.
std::string seconds_text(Duration time) {
  const Duration shown = std::max(Duration::zero(), time);
  return shown < std::chrono::minutes(1)
             ? fmt::format("{}s", std::chrono::floor<std::chrono::seconds>(shown).count())
             : duration_text(shown);
}
std::string tenths_text(Duration time) {
  const Duration shown = std::max(Duration::zero(), time);
  return shown < std::chrono::minutes(1)
             ? fmt::format("{:.1f}s", std::floor(static_cast<double>(shown.count()) / 1e8) / 10)
             : duration_text(shown);
}

// Averages neighbours, so that at most `columns` values remain.
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
  for (int i = 0; i < attempt.nodes_size() && i < kShown; ++i)
    out += (i > 0 ? " " : "") + printable(attempt.nodes(i).node());
  if (attempt.nodes_size() > kShown)
    out += fmt::format(" and {} more", attempt.nodes_size() - kShown);
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

void LiveView::set_job(const v1::Job& job) {
  const v1::Progress before = job_.progress();
  if (job.attempt() != job_.attempt()) recent_.clear();
  job_ = job;
  // After a restart the controller has no readings for a while; keep the old ones.
  if (!job_.has_progress() && before.attempt() == job_.attempt()) *job_.mutable_progress() = before;
}

void LiveView::set_phase(v1::JobPhase phase, std::uint32_t attempt) {
  if (phase != v1::JOB_PHASE_UNSPECIFIED) job_.set_phase(phase);
  if (attempt > job_.attempt()) {
    job_.set_attempt(attempt);
    recent_.clear();
  }
}

void LiveView::set_progress(const v1::Progress& progress, WallTime now) {
  if (!progress.has_step() || progress.attempt() < job_.attempt()) return;
  if (progress.attempt() != job_.progress().attempt()) recent_.clear();
  *job_.mutable_progress() = progress;
  if (recent_.empty() || recent_.back().second != progress.step()) {
    if (!recent_.empty() && progress.step() < recent_.back().second) recent_.clear();
    // The first reading may be much older than the start of this view.
    recent_.emplace_back(
        recent_.empty() && progress.has_at() ? std::min(now, to_wall(progress.at())) : now,
        progress.step());
    while (recent_.size() > 2 && now - recent_.front().first > std::chrono::seconds(10))
      recent_.pop_front();
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

bool LiveView::has_step() const {
  const v1::Progress& progress = job_.progress();
  return progress.attempt() >= job_.attempt() && (progress.step() > 0 || progress.has_loss());
}

std::string LiveView::restarting(WallTime now) const {
  if (is_final(job_.phase()) || job_.incidents().empty()) return {};
  const v1::Incident& incident = job_.incidents(job_.incidents_size() - 1);
  if (incident.has_first_step() || (has_step() && job_.progress().attempt() > incident.attempt()))
    return {};
  const bool placed = incident.has_placed();
  const std::string from = !placed ? ""
                           : incident.has_resumed_from()
                               ? fmt::format(", from step {}", incident.resumed_from())
                               : ", from the beginning";
  const Duration since =
      now - to_wall(incident.has_detected() ? incident.detected() : incident.fault());
  return fmt::format("restarting{}, {}", from, tenths_text(since));
}

Duration LiveView::step_age(WallTime now) const {
  return recent_.empty() ? Duration::zero()
                         : std::max(Duration::zero(), now - recent_.back().first);
}

double LiveView::rate(WallTime now) const {
  Duration gap = Duration::zero();
  for (std::size_t i = 1; i < recent_.size(); ++i)
    gap = std::max(gap, recent_[i].first - recent_[i - 1].first);
  const Duration patience = std::max<Duration>(kStalled, kGapsStalled * gap);
  if (job_.phase() != v1::JOB_PHASE_RUNNING || step_age(now) > patience) return 0;
  if (recent_.size() >= 2) {
    const double seconds =
        static_cast<double>((recent_.back().first - recent_.front().first).count()) / 1e9;
    if (seconds > 0.2)
      return static_cast<double>(recent_.back().second - recent_.front().second) / seconds;
  }
  return job_.progress().step_seconds() > 0 ? 1.0 / job_.progress().step_seconds() : 0;
}

std::vector<std::string> LiveView::lines(const Style& style, std::size_t width,
                                         WallTime now) const {
  std::vector<std::string> rows;
  std::vector<std::string> head = {style.paint(Tint::Bold, printable(job_.spec().name())),
                                   style.paint(phase_tint(job_.phase()), phase_text(job_.phase()))};
  if (job_.attempt() > 0) head.push_back(fmt::format("attempt {}", job_.attempt()));
  if (job_.restarts() > 0)
    head.push_back(fmt::format("{} restart{}", job_.restarts(), job_.restarts() == 1 ? "" : "s"));
  if (job_.attempts_size() > 0) {
    const v1::Attempt& attempt = job_.attempts(job_.attempts_size() - 1);
    std::uint32_t ranks = 0;
    for (const auto& node : attempt.nodes()) ranks += node.rank_count();
    head.push_back(
        fmt::format("{} rank{} on {}", ranks, ranks == 1 ? "" : "s", node_list(attempt)));
  }
  if (job_.has_submitted_at()) {
    const WallTime end = job_.has_ended_at() ? to_wall(job_.ended_at()) : now;
    head.push_back(style.paint(Tint::Dim, seconds_text(end - to_wall(job_.submitted_at()))));
  }
  pack(rows, head, width);

  const std::string again = restarting(now);
  if (!again.empty())
    rows.push_back(clip(style.paint(Tint::Warn, again), width));
  else if (has_step())
    add_progress(rows, style, width, now);
  else if (!is_final(job_.phase()))
    rows.push_back(clip(style.paint(Tint::Dim, "no step yet"), width));
  add_loss_row(rows, style, width, again.empty());

  std::vector<std::string> ages;
  const auto last = std::ranges::find(job_.checkpoints().rbegin(), job_.checkpoints().rend(), false,
                                      &v1::Checkpoint::quarantined);
  if (last != job_.checkpoints().rend()) {
    ages.push_back(fmt::format(
        "checkpoint of step {}{}", last->step(),
        is_final(job_.phase()) ? "" : ", " + seconds_text(now - to_wall(last->at())) + " ago"));
  }
  if (again.empty() && has_step() && !recent_.empty() && !is_final(job_.phase()))
    ages.push_back(fmt::format("last step {} ago", seconds_text(step_age(now))));
  pack(rows, ages, width);
  return rows;
}

void LiveView::add_progress(std::vector<std::string>& rows, const Style& style, std::size_t width,
                            WallTime now) const {
  const v1::Progress& progress = job_.progress();
  const double steps = rate(now);
  std::vector<std::string> fields;
  if (progress.total() > 0)
    fields.push_back(fmt::format("{}/{}  {}%", progress.step(), progress.total(),
                                 progress.step() * 100 / progress.total()));
  else
    fields.push_back(fmt::format("step {}", progress.step()));
  if (steps > 0) fields.push_back(fmt::format("{:.1f} steps/s", steps));
  if (steps > 0 && progress.total() > 0) {
    const double left =
        static_cast<double>(std::max<std::int64_t>(0, progress.total() - progress.step())) / steps;
    fields.push_back("ETA " + duration_text(std::chrono::duration_cast<Duration>(
                                  std::chrono::duration<double>(left))));
  }
  if (progress.total() > 0) {
    std::size_t all = 0;
    for (const std::string& field : fields) all += field.size() + kBlanks;
    const std::size_t first = fields.front().size() + kBlanks;
    // the width of all fields, or of the first field if the others go below the bar
    const std::size_t used = all + kBarLeast <= width ? all : first;
    const std::size_t cells = width > used ? std::min(kBarMost, width - used) : 0;
    const double share =
        static_cast<double>(progress.step()) / static_cast<double>(progress.total());
    if (cells > 0)
      fields.insert(fields.begin(), style.paint(Tint::Good, progress_bar(share, cells)));
  }
  pack(rows, fields, width);
}

void LiveView::add_loss_row(std::vector<std::string>& rows, const Style& style, std::size_t width,
                            bool now_known) const {
  if (losses_.empty()) return;
  std::vector<double> values;
  values.reserve(losses_.size());
  for (const LossPoint& point : losses_) values.push_back(point.loss);
  const std::string from = fmt::format("  from {:.4f}", values.front());
  const v1::Progress& progress = job_.progress();
  std::string title = "loss  ";
  if (now_known && progress.loss_not_finite())
    title = "loss NaN  ";
  else if (now_known)
    title = fmt::format("loss {:.4f}  ", progress.has_loss() ? progress.loss() : values.back());
  const std::size_t used = title.size() + from.size();
  const std::size_t cells = width > used ? std::min(kSparkMost, width - used) : kSparkLeast;
  rows.push_back(clip(title + style.paint(Tint::Accent, sparkline(values, cells)) + from, width));
}

std::vector<std::string> LiveView::chart(const Style& style, std::size_t width,
                                         std::size_t rows) const {
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
    std::string line = row == 0          ? fmt::format("{:>8.4f} ┤", high)
                       : row + 1 == rows ? fmt::format("{:>8.4f} ┤", low)
                                         : std::string(8, ' ') + " │";
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
  out.push_back(fmt::format(
      "{:>9}└{}", "", fmt::format("step {} to {}", losses_.front().step, losses_.back().step)));
  return out;
}

}  // namespace muster::render
