// What this node is but for its devices (probe.h): read at the agent's start and sent in Hello; its
// network again when the kernel says that it has changed. Plain functions over /proc and the
// system's tables; any thread; only Way::to() blocks, for a name look-up.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

// The way to the controller: its addresses, looked up once.
class Way {
 public:
  // gRPC target: "host:port", "[v6]:port", "unix:/path"
  static Result<Way> to(const std::string& controller);
  // The local address that packets to it leave from now. A controller on this machine (unix socket,
  // loopback): 127.0.0.1.
  [[nodiscard]] Result<std::string> local_address() const;

 private:
  std::string controller_;
  std::vector<sockaddr_storage> addresses_;  // none: it is on this machine
};

struct InventoryOptions {
  std::string address;         // training address
  bool address_given = false;  // by the operator
  std::map<std::string, std::string> labels;
};
v1::Inventory probe_inventory(const InventoryOptions& options);

// Its interfaces and routes, and its training address where that is the one towards the controller
// (`way`; null: it was given). An address that cannot be told now stays, and so do routes.
void read_network(v1::Inventory& inventory, const Way* way);

// "k=v" of --label. Keys: [a-zA-Z0-9]([a-zA-Z0-9._/-]{0,62}); values: up to 255 printable bytes.
Result<std::pair<std::string, std::string>> parse_label(const std::string& text);

Result<BootId> read_boot_id();
std::string host_name();
// Cores that this process may run on.
std::uint32_t usable_cores();

}  // namespace muster::agent
