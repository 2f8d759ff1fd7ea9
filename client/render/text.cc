#include "client/render/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <ctime>

#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

bool unset(const google::protobuf::Timestamp& stamp) {
  return stamp.seconds() == 0 && stamp.nanos() == 0;
}

std::time_t whole_seconds(const google::protobuf::Timestamp& stamp) {
  return std::chrono::floor<std::chrono::seconds>(to_wall(stamp)).time_since_epoch().count();
}

std::int64_t millisecond_part(const google::protobuf::Timestamp& stamp) {
  return to_wall(stamp).time_since_epoch() % std::chrono::seconds(1) / std::chrono::milliseconds(1);
}

}  // namespace

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
  return duration_text(now - to_wall(stamp)) + " ago";
}

std::string iso_text(const google::protobuf::Timestamp& stamp) {
  if (unset(stamp)) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(whole_seconds(stamp)),
                     millisecond_part(stamp));
}

std::string minute_text(const google::protobuf::Timestamp& stamp) {
  if (unset(stamp)) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M}Z", fmt::gmtime(whole_seconds(stamp)));
}

std::string clock_text(const google::protobuf::Timestamp& stamp) {
  if (unset(stamp)) return "-";
  const std::time_t seconds = whole_seconds(stamp);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millisecond_part(stamp));
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
