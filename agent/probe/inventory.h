// What this node is but for its devices (probe.h): read once at the agent's start, sent in Hello. Plain functions over /proc and the system's tables; any
// thread; blocks for a name look-up at most.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

struct InventoryOptions {
  std::string address;     // training address; empty: that of the interface which routes to the controller
  std::string controller;  // gRPC target: "host:port", "[v6]:port", "unix:/path"
  std::map<std::string, std::string> labels;
};
Result<v1::Inventory> probe_inventory(const InventoryOptions& options);

// The local address that packets to the controller leave from. A controller on this machine (unix socket, loopback): 127.0.0.1.
Result<std::string> address_towards(const std::string& controller);

// "k=v" of --label. Keys: [a-zA-Z0-9]([a-zA-Z0-9._/-]{0,62}); values: up to 255 printable bytes.
Result<std::pair<std::string, std::string>> parse_label(const std::string& text);

Result<BootId> read_boot_id();
std::string host_name();
// Cores that this process may run on.
std::uint32_t usable_cores();

}  // namespace muster::agent
