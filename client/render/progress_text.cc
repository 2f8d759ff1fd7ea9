#include "client/render/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

// enough time for a checkpoint, or for a slow heartbeat
constexpr Duration kStillLeast = std::chrono::seconds(10);
constexpr double kStillSteps = 5;

bool is_current(const v1::Job& job) { return job.progress().attempt() == job.attempt(); }

}  // namespace

std::string step_text(const v1::Progress& progress) {
  const bool none = !progress.has_step() ||
                    (progress.step() == 0 && !progress.has_loss() && progress.total() == 0);
  if (none) return "-";
  return progress.total() > 0 ? fmt::format("{}/{}", progress.step(), progress.total())
                              : fmt::format("{}", progress.step());
}

std::string loss_text(const v1::Progress& progress, int digits) {
  if (progress.loss_not_finite()) return "NaN";
  return progress.has_loss() ? fmt::format("{:.{}f}", progress.loss(), digits) : "-";
}

std::optional<Duration> step_age(const v1::Job& job, WallTime now) {
  const v1::Progress& progress = job.progress();
  if (!is_current(job) || !progress.has_step() || !progress.has_at()) return std::nullopt;
  return std::max<Duration>(Duration::zero(), now - to_wall(progress.at()));
}

bool went_back(const v1::Attempt& attempt) {
  return attempt.has_resume() && attempt.has_first_step() &&
         attempt.first_step() <= attempt.resume().step();
}

// Not every program prints how long a step took. Then this is the mean time since its ranks
// started, with their set-up included.
double step_seconds(const v1::Job& job) {
  const v1::Progress& progress = job.progress();
  if (!is_current(job)) return 0;
  if (progress.step_seconds() > 0 || job.attempts().empty()) return progress.step_seconds();
  const v1::Attempt& attempt = job.attempts(job.attempts_size() - 1);
  const std::int64_t steps =
      progress.step() - (attempt.has_resume() && !went_back(attempt) ? attempt.resume().step() : 0);
  if (progress.attempt() != attempt.number() || steps <= 0 || !attempt.has_running_at() ||
      !progress.has_at())
    return 0;
  return std::chrono::duration<double>(to_wall(progress.at()) - to_wall(attempt.running_at()))
             .count() /
         static_cast<double>(steps);
}

bool is_stepping(const v1::Job& job, WallTime now) {
  const auto age = step_age(job, now);
  if (job.phase() != v1::JOB_PHASE_RUNNING || !age) return false;
  const auto few = std::chrono::duration<double>(kStillSteps * step_seconds(job));
  return *age <= kStillLeast || std::chrono::duration<double>(*age) <= few;
}

std::string eta_text(const v1::Job& job, WallTime now) {
  const v1::Progress& progress = job.progress();
  const double each = step_seconds(job);
  if (progress.total() <= 0 || each <= 0 || !is_stepping(job, now)) return "-";
  const double left =
      static_cast<double>(std::max<std::int64_t>(0, progress.total() - progress.step())) * each;
  return duration_text(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left)));
}

}  // namespace muster::render
