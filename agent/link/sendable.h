// Repairs and shortens messages so that the controller can parse and accept them. Pure.
//
// Paths, environments and logs of a node may hold any bytes. A message that cannot be parsed would
// end the stream, and would be sent first again after each reconnect.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <vector>

#include "agent/core/reconcile.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Changes every `string` field, at any depth, to UTF-8. `bytes` fields stay as they are.
void make_sendable(google::protobuf::Message& message);

// less than the limit of a request (rpc::kRequestBytesMax)
inline constexpr std::size_t kHeartbeatBytesMost = 8U << 20U;
// Removes shards of checkpoints until the heartbeat has at most `most` bytes, first those of the
// attempt with the longest reading. One job's save directory must not end the stream that all jobs
// of the node share. Returns the runs whose shards were removed: the controller does not learn of
// their checkpoints.
std::vector<RunKey> trim_heartbeat(v1::Heartbeat& heartbeat, std::size_t most);

}  // namespace muster::agent
