// Whether the node's wall clock differs from the controller's so much that the times in logs and
// events mislead. Pure.
#pragma once

#include <optional>

#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr Duration kClockSkewMax = std::chrono::minutes(1);

// How far at least the node's clock is ahead of the controller's; negative: behind it. `ack`
// arrived at `now`, and answers a heartbeat that was sent at `sent`. Nothing: perhaps not more than
// kClockSkewMax.
std::optional<Duration> clock_skew(const v1::HeartbeatAck& ack, BootTime sent, Now now);

}  // namespace muster::agent
