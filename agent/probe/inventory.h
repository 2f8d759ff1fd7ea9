// Reads the inventory of this node, except its devices (probe.h). Plain functions over /proc and
// the system's tables, for any thread; only Way::to() blocks, to resolve a name.
//
// The agent reads the inventory at its start and sends it in Hello. It reads the network part again
// when the kernel reports a change.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

// The controller's addresses, which are resolved once.
class Way {
 public:
  // Takes a gRPC target: "host:port", "[v6]:port", "unix:/path".
  static Result<Way> to(const std::string& controller);
  // Returns the local address that packets to the controller use now. If the controller is on this
  // machine (unix socket, loopback), it is 127.0.0.1.
  [[nodiscard]] Result<std::string> local_address() const;

 private:
  std::string controller_;
  std::vector<sockaddr_storage> addresses_;  // empty: it is on this machine
};

struct InventoryOptions {
  std::string address;         // training address
  bool address_given = false;  // by the operator
  std::map<std::string, std::string> labels;
};
v1::Inventory probe_inventory(const InventoryOptions& options);

// Sets interfaces and routes, and the training address if that is the local address towards the
// controller (`way`; null: the operator gave the address). An address or routes that cannot be read
// now stay as they are.
void read_network(v1::Inventory& inventory, const Way* way);

Result<BootId> read_boot_id();
std::string host_name();
// Cores that this process may run on.
std::uint32_t usable_cores();

}  // namespace muster::agent
