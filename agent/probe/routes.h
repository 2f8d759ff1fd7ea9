// The kernel's routes as rtnetlink(7) lists them: those of its main table that lead to hosts
// through an interface that is up. Other tables are not read; that there are rules which choose one
// for any packet is told. Any thread; needs no rights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

// Interfaces that are up, by the kernel's index; loopback is none of them.
struct NetworkLink {
  std::string name;
  bool addressed = false;  // it has an address that others reach
};
using NetworkLinks = std::map<unsigned, NetworkLink>;

inline constexpr std::size_t kRoutesMax = 64;  // of an inventory
// that are looked at: a router may have a million
inline constexpr std::size_t kRoutesRead = 4'096;

struct Routes {
  // connected networks first, then the widest, so that what is beyond the bound is least missed
  std::vector<v1::NetworkRoute> routes;
  // there are more, or rules that choose other tables (overlay networks do so): what is told is not
  // all
  bool cut = false;
};

// Dumps of routes and rules (the answers to RTM_GETROUTE and RTM_GETRULE), read message by message.
//
// A host's own route through an interface without an address is left out: that is how containers
// are reached from their host, it leads to no other node, and it comes and goes with each of them.
// Of a route with several ways the first one stands for all.
class RouteDump {
 public:
  explicit RouteDump(const NetworkLinks& links) : links_(links) {}
  enum class Then : std::uint8_t { More, End, Failed };
  // One datagram as it came. Failed: the kernel has no such routes, or these are no messages.
  Then take(std::span<const std::byte> datagram);
  [[nodiscard]] Routes routes() const;

 private:
  // Members in the order in which routes are told.
  struct Route {
    bool gateway = false;
    unsigned bits = 0;
    bool v6 = false;
    std::string destination;
    std::uint32_t metric = 0;
    std::string interface, source;
    friend auto operator<=>(const Route&, const Route&) = default;
  };
  struct Way;

  void add(std::span<const std::byte> message);
  void add_rule(std::span<const std::byte> message);

  const NetworkLinks& links_;
  std::set<Route> found_;
  std::size_t seen_ = 0;
  bool other_tables_ = false;
};

// Waits a second at most for the kernel, which answers at once.
Result<Routes> read_routes(const NetworkLinks& links);

}  // namespace muster::agent
