// The streams of events and logs, read over a controller's restarts: taken up again where they
// ended, nothing twice and nothing left out. Each call blocks its thread until the stream has ended
// for good or the group is cancelled.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>

#include "client/commands/call_group.h"
#include "client/commands/context.h"

namespace muster::client {

// What to do when the controller goes away: it may come back.
enum class OnLoss : std::uint8_t {
  End,    // with the status UNAVAILABLE
  Wait,   // silently
  Notify  // wait, and say so on stderr, once each time
};

// Events of `request` from its from_index on, and samples if it wants them. `each` returns false to
// leave: the status is OK then.
grpc::Status read_events(const Session& session, CallGroup& calls, v1::WatchRequest request,
                         OnLoss loss, const std::function<bool(v1::WatchResponse&)>& each);

// Chunks of logs. Of a stream taken up again, `each` gets only what is behind what it had of that
// log and attempt. UNIMPLEMENTED: only logs beside the ranks' are asked for, of a controller that
// knows of none.
grpc::Status read_logs(const Session& session, CallGroup& calls, v1::ReadLogsRequest request,
                       OnLoss loss, const std::function<void(v1::ReadLogsResponse&)>& each);

}  // namespace muster::client
