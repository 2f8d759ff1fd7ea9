// The one gate that every message to the controller passes: whatever a node's paths, environments
// and logs are made of, the controller can parse it. One that cannot be parsed would end the
// stream, and come again first after each reconnect.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <vector>

#include "agent/core/reconcile.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Every `string` in it, at any depth, becomes UTF-8; `bytes` stay as they are.
void make_sendable(google::protobuf::Message& message);

// Below what a request may be (rpc::kRequestBytesMax).
inline constexpr std::size_t kHeartbeatBytesMost = 8U << 20U;
// Leaves out shards of checkpoints, those of the attempt that has most of them first, until the
// heartbeat is no longer than `most`: one job's save directory must not end the stream that all
// jobs of
// the node share. Returns whose it left out: of these, no checkpoint comes to be known.
std::vector<RunKey> trim_heartbeat(v1::Heartbeat& heartbeat, std::size_t most);

}  // namespace muster::agent
