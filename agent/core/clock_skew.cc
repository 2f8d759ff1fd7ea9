#include "agent/core/clock_skew.h"

#include "common/proto/proto_time.h"

namespace muster::agent {

std::optional<Duration> clock_skew(const v1::HeartbeatAck& ack, BootTime sent, Now now) {
  if (!ack.has_at()) return std::nullopt;
  // The controller read its clock at some moment between the two. So the node's clock is ahead by
  // what lies between these bounds.
  const Duration most = now.wall - to_wall(ack.at());
  const Duration least = most - (now.boot - sent);
  if (least > kClockSkewMax) return least;
  if (most < -kClockSkewMax) return most;
  return std::nullopt;
}

}  // namespace muster::agent
