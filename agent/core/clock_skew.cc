#include "agent/core/clock_skew.h"

#include "common/proto/proto_time.h"

namespace muster::agent {

std::optional<Duration> clock_skew(const v1::HeartbeatAck& ack, BootTime sent, Now now) {
  if (!ack.has_at()) return std::nullopt;
  // The controller read its clock at some moment between the two.
  const Duration round_trip = now.boot - sent;
  const Duration ahead = now.wall - to_wall(ack.at());
  const bool skewed =
      ahead < Duration::zero() ? -ahead > kClockSkewMax : ahead - round_trip > kClockSkewMax;
  return skewed ? std::optional(ahead) : std::nullopt;
}

}  // namespace muster::agent
