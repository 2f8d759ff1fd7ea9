// Reads the kernel's routes through rtnetlink(7). Plain functions and a parser for any thread; they
// need no rights.
//
// Only routes of the main table are read that lead to hosts through an interface that is up. Other
// tables are not read. Routes::cut reports that rules exist which choose another table for some
// packets.
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

// Interfaces that are up, by the kernel's index, without loopback.
struct NetworkLink {
  std::string name;
  bool addressed = false;  // it has an address that other hosts reach
};
using NetworkLinks = std::map<unsigned, NetworkLink>;

inline constexpr std::size_t kRoutesMax = 64;  // in one inventory
// Routes that are read: a router may have a million.
inline constexpr std::size_t kRoutesRead = 4'096;

struct Routes {
  // Connected networks come first, then the widest ones: those beyond the bound matter least.
  std::vector<v1::NetworkRoute> routes;
  // The list is incomplete: there are more routes, or rules choose other tables (as overlay
  // networks do).
  bool cut = false;
};

// RouteDump parses dumps of routes and rules (the answers to RTM_GETROUTE and RTM_GETRULE), message
// by message. Pure.
//
//   - A host route through an interface without an address is left out. Such a route leads from a
//     host to its container and to no other node. It comes and goes with the container.
//   - If a route has several next hops, the first one counts for all.
class RouteDump {
 public:
  explicit RouteDump(const NetworkLinks& links) : links_(links) {}
  enum class Then : std::uint8_t { More, End, Failed };
  // Takes one datagram as received. Failed: the kernel has no such routes, or the datagram is
  // invalid.
  Then take(std::span<const std::byte> datagram);
  [[nodiscard]] Routes routes() const;

 private:
  // The order of the members is the order in which routes are reported.
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

// Waits at most one second for the kernel, which normally answers at once.
Result<Routes> read_routes(const NetworkLinks& links);

}  // namespace muster::agent
