#include "agent/logs/step_guard.h"

namespace muster::agent {
namespace {

// allowed between two lines, whatever the earlier distance was
constexpr std::int64_t kReach = 1000;
constexpr std::int64_t kTimes = 10;  // multiple of the earlier distance
// The highest total that is accepted in a first line, and the highest step that is accepted without
// a total that contains it.
constexpr std::int64_t kTotalMost = 1'000'000'000;

}  // namespace

std::int64_t StepGuard::reach() const {
  return apart_ > INT64_MAX / kTimes ? INT64_MAX : std::max(kReach, kTimes * apart_);
}

bool StepGuard::is_near(const engine::StepLine& line, const engine::StepLine& latest) const {
  if (contradicts_itself(line)) return false;
  const bool own_total = line.total > 0 && line.step <= line.total;
  if (own_total && (latest.step < 0 ? line.total <= kTotalMost : line.total == latest.total))
    return true;
  const std::int64_t from = latest.step >= 0 ? latest.step : begin_;
  const bool within = latest.step < 0 || latest.total <= 0 || line.step <= latest.total;
  return within && (line.step <= from || line.step - from <= reach());
}

StepGuard::Verdict StepGuard::judge(const engine::StepLine& line, const engine::StepLine& latest) {
  if (contradicts_itself(line)) return Verdict::Not;
  if (is_near(line, latest)) {
    pending_.reset();
    if (latest.step >= 0 && line.step > latest.step) apart_ = line.step - latest.step;
    return Verdict::Counts;
  }
  if (line.step > kTotalMost) return Verdict::Not;
  const std::int64_t from = std::max<std::int64_t>(latest.step >= 0 ? latest.step : begin_, 0);
  if (pending_ && line.step > pending_->step &&
      line.step - pending_->step <= std::max(reach(), pending_->step - from)) {
    apart_ = line.step - pending_->step;
    return Verdict::Both;
  }
  pending_ = line;
  return Verdict::Not;
}

}  // namespace muster::agent
