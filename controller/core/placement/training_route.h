// Decides where a job's ranks meet if its spec names no interface, and the interface and address of
// each node for that. Placer (place.cc) owns one TrainingRoutes for each placement, and it refers
// to that placement's ledger. Pure.
//
// The rule, for a job over several nodes:
//
//   rank 0's node    Its own training address (Inventory.address), if every other node has a route
//                    to it. Otherwise, if nobody gave that address (--address), the first of its
//                    other addresses on whose network all the other nodes have an interface. Such
//                    an address is not the first choice where nodes reach the training address only
//                    by a gateway: a gateway usually works, and networks that every node has may
//                    belong to containers or tunnels.
//   any other node   The address that was given, if one was. Otherwise the address of its route to
//                    rank 0's node. The longest prefix wins, then the smallest metric, then the
//                    interface of its training address. The address is the route's source address;
//                    if it has none, one of the interface's addresses.
//
// A node with rank 0's own training address, or with that address on an interface, is on the same
// host and gets the same address.
//
// A node keeps its training address, and is assumed to have a route, in these cases:
//
// - It reports no routes: its kernel has none, or its agent cannot list them.
// - It does not report all routes, and none to a network that it is on itself.
// - Its route has no address of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/model/ledger.h"

namespace muster::core {

class TrainingRoutes {
 public:
  TrainingRoutes(const Ledger& ledger, const v1::JobSpec& spec);
  ~TrainingRoutes();
  TrainingRoutes(const TrainingRoutes&) = delete;
  TrainingRoutes& operator=(const TrainingRoutes&) = delete;

  // False: the job has one node, or names the interface.
  [[nodiscard]] bool matter() const { return matter_; }

  // Gives the nodes of a placement, rank 0's first, addresses and interfaces by the rule. False:
  // there is no place to meet, and the nodes stay as they are.
  [[nodiscard]] bool settle(std::vector<PlacedNode>& nodes);

  // The candidates that could be in one job with rank 0 on `first`, including `first`. Only
  // candidates for which `counts` is true are checked. The set is for the first address of `first`
  // that `enough` of them reach, otherwise for the address that most reach. Search::Enough: the
  // search may stop at `enough`.
  enum class Search : std::uint8_t { Enough, All };
  struct ReachableSet {
    std::string address;  // of `first`
    std::vector<bool> in;
    std::size_t size = 0;
  };
  ReachableSet reachable(const std::vector<const NodeRecord*>& candidates, std::size_t first,
                         std::size_t enough, Search search,
                         const std::function<bool(std::size_t)>& counts);

 private:
  struct View;   // a node's network
  struct Place;  // an address of rank 0's node
  struct Way;

  const View& view(const NodeRecord& node);
  static Place own_place(const NodeRecord& first);
  [[nodiscard]] std::vector<Place> others(const NodeRecord& first);
  std::optional<Way> way(const NodeRecord& node, const NodeRecord& first, const Place& place);
  bool settle_at(const Place& place, const NodeRecord& first, std::vector<PlacedNode>& nodes);

  const Ledger& ledger_;
  bool matter_;
  std::map<const NodeRecord*, std::unique_ptr<View>> views_;
};

// "has no route to 10.77.0.2, the training address of 'n0'".
std::string no_route_text(const TrainingRoutes::ReachableSet& reachable, const NodeRecord& first);
// The remedy.
inline constexpr std::string_view kWhenTheyDoNotMeet =
    "; the nodes of a job need a way to its first one's training address: name the network "
    "interface that they share with network.interface, or start their "
    "agents with --address";

}  // namespace muster::core
