// Reads the streams of events and logs over restarts of the controller. Stateless functions. Each
// call blocks its thread until the stream has ended for good or the group is cancelled.
//
// After a restart a stream continues where it ended: nothing comes twice, and nothing is left out.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>

#include "client/commands/call/call_group.h"
#include "client/commands/call/context.h"

namespace muster::client {

// What to do when the controller goes away, because it may come back.
enum class OnLoss : std::uint8_t {
  End,    // with the status UNAVAILABLE
  Wait,   // silently
  Notify  // wait, and report it on stderr, once for each loss
};

// Reads the events of `request` from its from_index on, with samples if the request asks for them.
// `each` returns false to stop; then the status is OK.
grpc::Status read_events(const Session& session, CallGroup& calls, v1::WatchRequest request,
                         OnLoss loss, const std::function<bool(v1::WatchResponse&)>& each);

// Reads chunks of logs. After a restart, `each` gets only bytes after those that it has already got
// of that log and attempt.
grpc::Status read_logs(const Session& session, CallGroup& calls, v1::ReadLogsRequest request,
                       OnLoss loss, const std::function<void(v1::ReadLogsResponse&)>& each);

}  // namespace muster::client
