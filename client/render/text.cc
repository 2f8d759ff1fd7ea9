#include "client/render/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <ctime>

namespace muster::render {
namespace {

bool unset(const google::protobuf::Timestamp& stamp) {
  return stamp.seconds() == 0 && stamp.nanos() == 0;
}

}  // namespace

WallTime wall_time(const google::protobuf::Timestamp& stamp) {
  return WallTime(std::chrono::seconds(stamp.seconds()) + std::chrono::nanoseconds(stamp.nanos()));
}

std::string duration_text(Duration duration) {
  using namespace std::chrono;
  if (duration < Duration::zero()) return "0s";
  if (duration < seconds(1))
    return fmt::format("{}ms", duration_cast<milliseconds>(duration).count());
  const auto all = duration_cast<seconds>(duration).count();
  if (all < 10) return fmt::format("{:.1f}s", static_cast<double>(duration.count()) / 1e9);
  if (all < 60) return fmt::format("{}s", all);
  if (all < 3600) return fmt::format("{}m{:02}s", all / 60, all % 60);
  if (all < 86400) return fmt::format("{}h{:02}m", all / 3600, all / 60 % 60);
  return fmt::format("{}d{:02}h", all / 86400, all / 3600 % 24);
}

std::string ago_text(const google::protobuf::Timestamp& stamp, WallTime now) {
  if (unset(stamp)) return "-";
  return duration_text(now - wall_time(stamp)) + " ago";
}

std::string iso_text(const google::protobuf::Timestamp& stamp) {
  if (unset(stamp)) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(stamp.seconds())),
                     stamp.nanos() / 1'000'000);
}

std::string clock_text(const google::protobuf::Timestamp& stamp) {
  if (unset(stamp)) return "-";
  const auto seconds = static_cast<std::time_t>(stamp.seconds());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", parts.tm_hour, parts.tm_min, parts.tm_sec,
                     stamp.nanos() / 1'000'000);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string phase_text(v1::JobPhase phase) {
  switch (static_cast<int>(phase)) {
    case v1::JOB_PHASE_QUEUED: return "queued";
    case v1::JOB_PHASE_LAUNCHING: return "launching";
    case v1::JOB_PHASE_RUNNING: return "running";
    case v1::JOB_PHASE_DRAINING: return "draining";
    case v1::JOB_PHASE_COMPLETING: return "completing";
    case v1::JOB_PHASE_SUCCEEDED: return "succeeded";
    case v1::JOB_PHASE_FAILED: return "failed";
    case v1::JOB_PHASE_CANCELLED: return "cancelled";
    default: return "unknown";
  }
}

Tint phase_tint(v1::JobPhase phase) {
  switch (static_cast<int>(phase)) {
    case v1::JOB_PHASE_RUNNING:
    case v1::JOB_PHASE_SUCCEEDED: return Tint::Good;
    case v1::JOB_PHASE_FAILED: return Tint::Bad;
    case v1::JOB_PHASE_DRAINING:
    case v1::JOB_PHASE_CANCELLED: return Tint::Warn;
    default: return Tint::Accent;
  }
}

bool is_final(v1::JobPhase phase) {
  return phase == v1::JOB_PHASE_SUCCEEDED || phase == v1::JOB_PHASE_FAILED ||
         phase == v1::JOB_PHASE_CANCELLED;
}

std::string class_text(v1::FailureClass cls) {
  switch (static_cast<int>(cls)) {
    case v1::FAILURE_CLASS_USER_ERROR: return "user error";
    case v1::FAILURE_CLASS_SIGNAL: return "signal";
    case v1::FAILURE_CLASS_OOM: return "out of memory";
    case v1::FAILURE_CLASS_NODE: return "node";
    case v1::FAILURE_CLASS_LAUNCH: return "launch";
    case v1::FAILURE_CLASS_WORKER: return "worker";
    case v1::FAILURE_CLASS_OPERATOR: return "operator";
    default: return "unknown";
  }
}

std::string exit_text(const v1::RankExit& exit) {
  if (exit.signal() != 0) {
    const char* name = sigabbrev_np(exit.signal());
    return name != nullptr ? fmt::format("killed by SIG{}", name)
                           : fmt::format("killed by signal {}", exit.signal());
  }
  if (exit.code() < 0) return "lost (nobody saw its status)";
  return fmt::format("status {}", exit.code());
}

}  // namespace muster::render
