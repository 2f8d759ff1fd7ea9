// The one gate that every message to the controller passes: whatever a node's paths, environments and logs are made of, the controller can parse it. One that
// cannot be parsed would end the stream, and come again first after each reconnect.
#pragma once

#include <google/protobuf/message.h>

namespace muster::agent {

// Every `string` in it, at any depth, becomes UTF-8; `bytes` stay as they are.
void make_sendable(google::protobuf::Message& message);

}  // namespace muster::agent
